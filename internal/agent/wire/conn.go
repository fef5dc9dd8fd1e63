package wire

import (
	"io"
	"net"
	"time"
)

// Conn dresses a stream, such as an SSH session or standard input and output, as a net.Conn for
// net/http. Deadlines are accepted and do nothing: HTTP/2 pings find a dead peer.
func Conn(stream io.ReadWriteCloser) net.Conn { return conn{stream} }

type conn struct{ io.ReadWriteCloser }

func (conn) LocalAddr() net.Addr              { return address{} }
func (conn) RemoteAddr() net.Addr             { return address{} }
func (conn) SetDeadline(time.Time) error      { return nil }
func (conn) SetReadDeadline(time.Time) error  { return nil }
func (conn) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "stdio" }
func (address) String() string  { return "stdio" }

package facts

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// sockets are the listeners, with those whose process is still looked for, by inode.
type sockets struct {
	list   []agent.Listener
	wanted map[uint64]int
}

// sockets lists the TCP sockets that take connections; their ports are facts of their own.
func (s Source) sockets(facts *agent.Facts, odd *notes) *sockets {
	found := &sockets{wanted: map[uint64]int{}}
	if s.Listening != nil {
		var err error
		facts.Listening, err = s.Listening()
		odd.add(err)
		return found
	}
	open, _ := s.ListeningSockets() // What cannot be read is empty, as in text.
	slices.SortStableFunc(open, func(a, b Socket) int { return a.Port - b.Port })
	facts.Listening = []int{}
	for _, socket := range open {
		facts.Listening = append(facts.Listening, socket.Port)
		if socket.Inode != 0 {
			found.wanted[socket.Inode] = len(found.list)
		}
		found.list = append(found.list, socket.Listener)
	}
	facts.Listening = slices.Compact(facts.Listening)
	return found
}

// ListeningSockets are the TCP sockets that take connections. With an error the list is what was read before.
func (s Source) ListeningSockets() ([]Socket, error) {
	var list []Socket
	if s.Listeners != nil {
		listeners, err := s.Listeners()
		for _, listener := range listeners {
			list = append(list, Socket{Listener: listener})
		}
		return list, err
	}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(s.path(file))
		if errors.Is(err, os.ErrNotExist) && file != "/proc/net/tcp" {
			continue // IPv6 is off
		}
		if err != nil {
			return list, err
		}
		list = append(list, ParseListening(string(text))...)
	}
	return list, nil
}

// owners looks among a process's files for the sockets whose owner is not known yet. Processes of
// other users are refused at once.
func (s Source) owners(sockets *sockets, pid int, program string) {
	if len(sockets.wanted) == 0 {
		return
	}
	folder := s.path("/proc", strconv.Itoa(pid), "fd")
	opened, err := os.Open(folder)
	if err != nil {
		return
	}
	defer opened.Close() //nolint:errcheck // Nothing was written.
	names, _ := opened.Readdirnames(-1)
	for _, name := range names {
		link, err := os.Readlink(folder + "/" + name)
		text, isSocket := strings.CutPrefix(link, "socket:[")
		if err != nil || !isSocket {
			continue
		}
		inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
		at, wanted := sockets.wanted[inode]
		if err != nil || !wanted {
			continue
		}
		sockets.list[at].PID, sockets.list[at].Program = pid, program
		delete(sockets.wanted, inode)
	}
}

// Socket is a listener with the inode by which its process is found; 0 if there is none.
type Socket struct {
	agent.Listener
	Inode uint64
}

// ParseListening gives the sockets in state LISTEN of /proc/net/tcp or tcp6.
func ParseListening(text string) []Socket {
	const listen = "0A" // TCP_LISTEN of net/tcp_states.h
	list := []Socket{}
	for line := range strings.Lines(text) {
		// sl local_address rem_address st queues timer retransmits uid timeout inode …
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != listen {
			continue
		}
		host, hexPort, found := strings.Cut(fields[1], ":")
		port, err := strconv.ParseUint(hexPort, 16, 16)
		if !found || err != nil {
			continue
		}
		socket := Socket{Listener: agent.Listener{Address: ParseHexAddress(host), Port: int(port)}}
		if len(fields) >= 10 {
			if uid, err := strconv.ParseUint(fields[7], 10, 31); err == nil {
				socket.UID = int(uid)
			}
			if inode, err := strconv.ParseUint(fields[9], 10, 64); err == nil {
				socket.Inode = inode
			}
		}
		list = append(list, socket)
	}
	return list
}

// ParseHexAddress reads an address of /proc/net: words of 32 bits in the machine's order, which is
// little-endian on both architectures that we know. It is invalid if the text is no address.
func ParseHexAddress(text string) netip.Addr {
	data, err := hex.DecodeString(text)
	if err != nil || len(data)%4 != 0 {
		return netip.Addr{}
	}
	for word := range slices.Chunk(data, 4) {
		slices.Reverse(word)
	}
	address, _ := netip.AddrFromSlice(data)
	return address
}

package fleet

import (
	"cmp"
	"sync"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/sshx"
)

// DialTimeout bounds one connection attempt, handshake included.
const DialTimeout = 10 * time.Second

// Connection says how to reach one node; what is empty comes from the pool's defaults.
type Connection struct {
	Host    string
	Port    int
	User    string
	HostKey string // pinned key or fingerprint
	Socket  string // the engine's socket on the node
}

// Defaults are the provider's settings for every node.
type Defaults struct {
	Port            int
	User            string
	PrivateKeyFile  string
	KnownHostsFiles []string
}

// Pool has one machine per host for the life of a provider process.
type Pool struct {
	defaults Defaults
	mutex    sync.Mutex
	machines map[string]*machine
}

// NewPool makes an empty pool; nothing is dialled until a machine is asked something.
func NewPool(defaults Defaults) *Pool {
	return &Pool{defaults: defaults, machines: map[string]*machine{}}
}

// Machine gives the one machine for a connection. Another user, port, key or socket for the same
// host makes a new machine: settings are part of the identity, so that none is silently ignored.
func (p *Pool) Machine(connection Connection) Machine {
	connection.Port = cmp.Or(connection.Port, p.defaults.Port, 22)
	connection.User = cmp.Or(connection.User, p.defaults.User)
	connection.Socket = cmp.Or(connection.Socket, engine.DefaultSocket)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	key := connection.key()
	if known, ok := p.machines[key]; ok {
		return known
	}
	made := newMachine(connection, sshx.Config{
		Host: connection.Host, Port: connection.Port, User: connection.User, HostKey: connection.HostKey,
		PrivateKeyFile: p.defaults.PrivateKeyFile, KnownHostsFiles: p.defaults.KnownHostsFiles,
		Timeout: DialTimeout,
	})
	p.machines[key] = made
	return made
}

// Close ends every connection.
func (p *Pool) Close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, known := range p.machines {
		known.close()
	}
	p.machines = map[string]*machine{}
}

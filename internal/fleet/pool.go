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
	// PrivateKeyFile, CertificateFile, ProxyJump and HostKeyPolicy are as in [sshx.Config].
	PrivateKeyFile  string
	CertificateFile string
	ProxyJump       []string
	HostKeyPolicy   string
	// Transport is TransportSSH (also if empty) or TransportLocal: the node is the machine we run on.
	Transport string
	// AgentDir is the folder for the agent's program on the node; empty lets the agent's client choose.
	AgentDir string
}

// The ways to reach a node.
const (
	TransportSSH   = "ssh"
	TransportLocal = "local"
)

// Defaults are the provider's settings for every node.
type Defaults struct {
	Port            int
	User            string
	PrivateKeyFile  string
	KnownHostsFiles []string
	// PrivateKey is the key itself, in PEM; Passphrase opens an encrypted key.
	PrivateKey string
	Passphrase string
	// The others are as in Connection and [sshx.Config].
	CertificateFile string
	ConfigFile      string
	ProxyJump       []string
	HostKeyPolicy   string
	Socket          string
	AgentDir        string
}

// Pool has one machine per host for the life of a provider process.
type Pool struct {
	defaults Defaults
	shared   sshx.Shared
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
	connection.Port = cmp.Or(connection.Port, p.defaults.Port) // 0: what ssh_config says, else 22
	connection.User = cmp.Or(connection.User, p.defaults.User)
	connection.Socket = cmp.Or(connection.Socket, p.defaults.Socket, engine.DefaultSocket)
	connection.HostKeyPolicy = cmp.Or(connection.HostKeyPolicy, p.defaults.HostKeyPolicy)
	connection.AgentDir = cmp.Or(connection.AgentDir, p.defaults.AgentDir)
	connection.Transport = cmp.Or(connection.Transport, TransportSSH)
	if len(connection.ProxyJump) == 0 {
		connection.ProxyJump = p.defaults.ProxyJump
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	key := connection.key()
	if known, ok := p.machines[key]; ok {
		return known
	}
	made := newMachine(connection, p.config(connection))
	p.machines[key] = made
	return made
}

// config is what SSH needs to know for a connection. A node's own key file replaces the default key
// with all that belongs to it.
func (p *Pool) config(connection Connection) sshx.Config {
	config := sshx.Config{
		Host: connection.Host, Port: connection.Port, User: connection.User, HostKey: connection.HostKey,
		PrivateKeyFile: p.defaults.PrivateKeyFile, PrivateKey: p.defaults.PrivateKey, Passphrase: p.defaults.Passphrase,
		CertificateFile: p.defaults.CertificateFile, ConfigFile: p.defaults.ConfigFile, ProxyJump: connection.ProxyJump,
		HostKeyPolicy: connection.HostKeyPolicy, KnownHostsFiles: p.defaults.KnownHostsFiles, Timeout: DialTimeout,
		Shared: &p.shared,
	}
	if connection.PrivateKeyFile != "" {
		config.PrivateKeyFile, config.PrivateKey, config.CertificateFile = connection.PrivateKeyFile, "", ""
	}
	config.CertificateFile = cmp.Or(connection.CertificateFile, config.CertificateFile)
	return config
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

package hosttest

// faultState is what is broken about a host.
type faultState struct {
	denyUser         bool
	engineDown       bool
	engineFrozen     bool
	denySocket       bool
	forbidForwarding bool
	noNVIDIARuntime  bool
	serveLog         string
	completions      bool
}

func (h *Host) faults() faultState {
	h.fleet.mu.Lock()
	defer h.fleet.mu.Unlock()
	return h.fault
}

// StopSSH closes the SSH port and cuts all connections: a new one is refused.
func (h *Host) StopSSH() { h.ssh.stop(true) }

// StartSSH opens the port again.
func (h *Host) StartSSH() {
	h.fleet.t.Helper()
	if err := h.ssh.start(); err != nil {
		h.fleet.t.Fatalf("hosttest: start SSH on %s: %v", h.name, err)
	}
}

// CutSSH breaks the open connections; new ones are accepted.
func (h *Host) CutSSH() { h.ssh.cut() }

// ChangeHostKey gives the host another host key, as a reinstallation does.
func (h *Host) ChangeHostKey() {
	h.fleet.t.Helper()
	if err := h.ssh.changeKey(); err != nil {
		h.fleet.t.Fatalf("hosttest: change the host key of %s: %v", h.name, err)
	}
	h.ssh.cut()
}

// DenyUser makes the host refuse the key, as if it were not in authorized_keys.
func (h *Host) DenyUser(denied bool) { h.change(func() { h.fault.denyUser = denied }) }

// EngineDown stops the Docker engine's service: the socket is gone. Containers keep running.
func (h *Host) EngineDown(down bool) {
	h.change(func() { h.fault.engineDown = down })
	if down {
		h.engine.cut()
	}
}

// FreezeEngine makes the engine's process take connections and requests and answer none, as one that
// is stuck in its start does. FreezeEngine(false) lets later requests through.
func (h *Host) FreezeEngine(frozen bool) {
	h.change(func() { h.fault.engineFrozen = frozen })
}

// DenySocket takes the login user out of the docker group.
func (h *Host) DenySocket(denied bool) { h.change(func() { h.fault.denySocket = denied }) }

// ForbidForwarding is sshd's DisableForwarding.
func (h *Host) ForbidForwarding(forbidden bool) {
	h.change(func() { h.fault.forbidForwarding = forbidden })
}

// RemoveNVIDIARuntime makes `docker run --gpus` fail as without the NVIDIA container toolkit.
func (h *Host) RemoveNVIDIARuntime(removed bool) {
	h.change(func() { h.fault.noNVIDIARuntime = removed })
}

// FailServe makes every `vllm serve` on the host exit with code 1 and these last lines; empty heals.
func (h *Host) FailServe(log string) { h.change(func() { h.fault.serveLog = log }) }

// FailCompletions makes servers die at the first completion while /health says 200.
func (h *Host) FailCompletions(fail bool) { h.change(func() { h.fault.completions = fail }) }

// Reboot exits every container and cuts the connections. Nothing restarts by itself.
func (h *Host) Reboot() {
	h.change(h.exitAll)
	h.ssh.cut()
}

// PowerOff is a host that is gone: containers exited, addresses unreachable from the other hosts. Its
// SSH port refuses at once, where a real one would let the dialler wait for its time-out.
func (h *Host) PowerOff() {
	h.change(func() {
		h.exitAll()
		h.off = true
	})
	h.ssh.stop(true)
}

// PowerOn starts the host again; its containers stay exited.
func (h *Host) PowerOn() {
	h.fleet.t.Helper()
	h.change(func() { h.off = false })
	h.StartSSH()
}

func (h *Host) exitAll() {
	for _, c := range h.containers {
		c.exit(exitKilled)
	}
}

// Counters tells what each host saw so far.
func (f *Fleet) Counters() []Counters {
	var all []Counters
	for _, host := range f.hosts {
		all = append(all, host.Counters())
	}
	return all
}

// Counters tells what the host saw so far.
func (h *Host) Counters() Counters {
	return Counters{
		Connections: h.ssh.connections.Load(), Handshakes: h.ssh.handshakes.Load(),
		Sessions: h.ssh.sessions.Load(), Forwards: h.ssh.forwards.Load(),
		Keepalives: h.ssh.keepalives.Load(), Facts: h.ssh.facts.Load(),
	}
}

package sshx

import (
	"fmt"
	"slices"
)

// Advice is the likely cause with its evidence and the next step.
func (e *Error) Advice() string {
	if e.Local {
		return e.localAdvice()
	}
	switch e.Kind {
	case NameNotFound:
		return fmt.Sprintf("The resolver of this machine does not know %q. Check the spelling, the DNS or /etc/hosts entry, or use the address.", e.dialled())
	case Refused:
		return fmt.Sprintf("The machine answers, but nothing listens on port %d. Check that sshd runs there (systemctl status ssh) and that the port is right.", e.Port)
	case Unreachable:
		return "This machine has no route to the host. Check that it is powered on, the cable and the VPN, and the address."
	case TimedOut:
		if e.Step == stepDial {
			return "No answer came to the TCP connection: the host is off, the address is wrong, or a firewall drops the packets. Check with ping and ssh from this machine."
		}
		if e.Step == stepWait {
			return "All sessions that sshd allows on the connection were in use until the time was over: other commands on the host take long, or MaxSessions in its configuration is very low."
		}
		return fmt.Sprintf("The port accepted the connection, but sshd did not finish its part of the %s in time. The host may be overloaded or frozen: check its console.", e.Step)
	case NotSSH:
		return fmt.Sprintf("What listens on port %d is not an SSH server that we understand. Check the port, and what answers there (`nc %s %d` shows its first line).", e.Port, e.dialled(), e.Port)
	case Busy:
		return "sshd has more logins under way than it allows (MaxStartups in its configuration), or something refuses this machine by its address (hosts.deny, fail2ban, a firewall): sshd's log on the host says which. Run again later, or raise MaxStartups."
	case Penalised:
		return "After failed logins from this address sshd refuses it for some time (PerSourcePenalties, OpenSSH 9.8 and later). Wait a minute and correct the key or user before the next try, or exempt this machine with PerSourcePenaltyExemptList."
	case NoAlgorithm:
		return "The host's sshd allows only algorithms that this program does not have, or the other way round: the message lists both sides. Compare with `sshd -T | grep -iE 'kex|cipher|mac|hostkeyalg'` on the host."
	case UnknownHostKey, ChangedHostKey, RevokedHostKey:
		return e.hostKeyAdvice()
	case AuthFailed, BadCertificate, NoKey, KeyEncrypted, WrongPassphrase, KeyUnreadable, KeyMalformed, AgentFailed:
		return e.keyAdvice()
	case ForwardingForbidden:
		return "The sshd configuration (AllowTcpForwarding, AllowStreamLocalForwarding, DisableForwarding) or a restriction on the key in authorized_keys forbids it. Allow it for this user; add port-forwarding after restrict in authorized_keys."
	case ConnectFailed:
		return "sshd tried and could not open it: nothing listens there, the login user may not use it, or (for a unix socket) sshd forbids it, which it reports in the same words: AllowStreamLocalForwarding or DisableForwarding in its configuration, or restrict without port-forwarding in authorized_keys."
	case JumpFailed:
		return fmt.Sprintf("The jump host %s took the login, but could not open the connection from there. Check the address and port of the next host as the jump host sees them, and that sshd runs there: `%s` and then ssh onwards.", e.Host, e.command("ssh"))
	case ProxyFailed:
		return "ssh_config names a ProxyCommand for this host, and it ended without a connection. Try it by hand, or give proxy_jump, which needs no command."
	case NoSession:
		return "The host took the login, but opens no session for a command: MaxSessions is 0 in sshd's configuration or used up by others on this connection, or the account may not run commands."
	case BadSettings:
		return "The host was not asked. Correct the setting that the message names, in the provider's configuration or in ssh_config (`ssh -G HOST` shows what ssh makes of it)."
	case Lost:
		if e.Step == stepHandshake || e.Step == stepAuth {
			return "The connection was cut in the middle of the login: sshd was restarted or crashed, it gave up waiting (LoginGraceTime), or a firewall or intrusion guard cut it. sshd's log on the host says more."
		}
		return "The host rebooted or froze, or the network between was cut. Check that it is up (uptime shows a reboot) and run again."
	case Other:
		return "See the cause above; ssh -v to the host from this machine shows more."
	}
	return ""
}

func (e *Error) hostKeyAdvice() string {
	switch e.Kind {
	case UnknownHostKey:
		return fmt.Sprintf("Compare %s with the host's own key (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub on its console), then connect once by hand (%s), add the line that %s prints, or set host_key to the fingerprint.",
			e.Offered, e.command("ssh"), e.command("ssh-keyscan"))
	case ChangedHostKey:
		return fmt.Sprintf("The host offers %s where %s is trusted: it was installed anew, another machine has its address, or somebody is in between. If the new key is right, run %s and accept it, or change host_key.",
			e.Offered, list(e.Trusted), e.command("ssh-keygen -R"))
	default:
		return "An administrator marked this key with @revoked, so the host must not be trusted with it. Give the host a new key, or ask who revoked it."
	}
}

func (e *Error) keyAdvice() string {
	switch e.Kind {
	case AuthFailed:
		return e.authAdvice()
	case BadCertificate:
		return "Have the authority sign the key again, for this user and with a validity that covers the run (`ssh-keygen -L -f FILE-cert.pub` shows both), and check that the clocks of both machines agree."
	case KeyEncrypted:
		return "Give its passphrase, or load the key into an SSH agent (ssh-add), which this program asks by SSH_AUTH_SOCK."
	case WrongPassphrase:
		return "Check the passphrase: `ssh-keygen -y -f FILE` asks for it and prints the public key if it is right."
	case KeyUnreadable:
		return "Check the path, and that the user who runs Terraform may read the file."
	case KeyMalformed:
		return "Give a private key in OpenSSH or PEM format: ed25519, ECDSA or RSA. `ssh-keygen -y -f FILE` shows whether it is one; keys on security tokens work through an SSH agent."
	case AgentFailed:
		return "Check that the agent runs and that SSH_AUTH_SOCK (or IdentityAgent in ssh_config) names its socket: `ssh-add -l` asks it. Or name a private key file."
	default:
		return "Name a private key file (private_key_file), start an SSH agent that holds the key, or create ~/.ssh/id_ed25519 with ssh-keygen."
	}
}

func (e *Error) authAdvice() string {
	switch {
	case e.Partial:
		return fmt.Sprintf("The host accepted the key and also wants one of %s, which needs a person. Exempt this user or key from the second factor.", list(e.Methods))
	case len(e.Methods) > 0 && !slices.Contains(e.Methods, "publickey"):
		return fmt.Sprintf("The host takes only %s from user %q, no keys. Set PubkeyAuthentication yes in its sshd configuration.", list(e.Methods), e.User)
	}
	return fmt.Sprintf("User %q on the host has none of these public keys in ~/.ssh/authorized_keys, the user name is wrong, or the account is locked, expired or without a valid shell. Add a key with %s, or check the host's sshd log for the reason.",
		e.User, e.command("ssh-copy-id"))
}

// localAdvice is for the machine that we run on.
func (e *Error) localAdvice() string {
	switch e.Kind {
	case ConnectFailed:
		return "It was opened on this machine, without SSH: nothing listens there, or the user who runs Terraform may not use it."
	case NoSession:
		return "The command was to be started on this machine, without SSH: check that /bin/sh works for the user who runs Terraform."
	default:
		return "It was tried on this machine, without SSH: the cause above is the system's own."
	}
}

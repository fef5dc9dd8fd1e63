package diagnose

// hostRules know SSH, sudo, clocks and the kernel.
func hostRules() []Rule {
	return []Rule{
		{
			ID: "host-key", Row: 96, Kind: Root,
			Any:     []string{"REMOTE HOST IDENTIFICATION HAS CHANGED", "Host key verification failed", "knownhosts: key mismatch", "knownhosts: key is unknown"},
			Message: "REMOTE HOST IDENTIFICATION HAS CHANGED; Host key verification failed",
			Cause:   "The host's key is not the one that is known: the node was reinstalled, another machine answers, or this address has no entry.",
			Fix:     "Compare with the fingerprint on the node (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`), then renew known_hosts; HostKeyAlias serves for fabric addresses.",
		},
		{
			ID: "passphrase", Row: 97, Kind: Root,
			Any:     []string{"Enter passphrase for", "this private key is passphrase protected"},
			Message: "Enter passphrase for key '…'",
			Cause:   "The SSH key is encrypted, and nobody is there to type its passphrase.",
			Fix:     "Load it into an agent (`ssh-add`), or give the passphrase by configuration.",
		},
		{
			ID: "no-ssh-folder", Row: 98, Kind: Root,
			Any:     []string{"/.ssh"},
			Pattern: `/\.ssh(?:/[\w.-]*)?'?: No such file or directory`,
			Message: "~/.ssh/known_hosts: No such file or directory",
			Cause:   "The user has no ~/.ssh folder there.",
			Fix:     "`mkdir -m 700 ~/.ssh` on that host.",
		},
		{
			ID: "key-refused", Kind: Root,
			Any:     []string{"Permission denied (publickey", "ssh: unable to authenticate"},
			Message: "Permission denied (publickey)",
			Cause:   "The host accepts none of the SSH keys that were offered for that user.",
			Fix:     "`ssh-copy-id` the key, or name the right user and key.",
		},
		{
			ID: "docker-socket", Row: 99, Kind: Root,
			Any:     []string{"docker.sock", "docker API at unix"},
			Pattern: `(?i)permission denied.*docker.*sock|docker\.sock.*permission denied`,
			Message: "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
			Cause:   "The user is not in the group docker there, or not in this session yet.",
			Fix:     "`sudo usermod -aG docker $USER`, then log in anew.",
		},
		{
			ID: "docker-down", Kind: Root,
			Any:     []string{"Cannot connect to the Docker daemon"},
			Message: "Cannot connect to the Docker daemon at unix:///var/run/docker.sock",
			Cause:   "Docker does not run there.",
			Fix:     "`sudo systemctl start docker`; `journalctl -u docker` says why it ended.",
		},
		{
			ID: "sudo", Row: 100, Kind: Root,
			Any:     []string{"sudo: a password is required", "sudo: a terminal is required", "no tty present and no askpass program"},
			Message: "sudo: a password is required",
			Cause:   "A command needs root, and sudo asks for a password that nobody can type.",
			Fix:     "Allow just that command without a password in /etc/sudoers.d, or leave the step out: the provider itself needs no root.",
		},
		{
			ID: "clock", Row: 101, Kind: Root,
			Any:     []string{"certificate is not yet valid", "certificate has expired or is not yet valid"},
			Message: "x509: certificate has expired or is not yet valid",
			Cause:   "A certificate's time does not fit the clock of that host, which is most likely wrong.",
			Fix:     "`timedatectl set-ntp true` there, and compare `date` on all nodes.",
		},
		{
			ID: "other-home", Row: 102, Kind: Root,
			Any:     []string{"No such file or directory"},
			Pattern: `(?:cd|bash|sh|chdir to cwd|mount)[^\n]*?['" :](/home/[\w.-]+/\S*?)['":]*[: ]+No such file or directory`,
			Message: "cd: /home/alice/models: No such file or directory",
			Cause:   "A folder of one node's user is not on this one: user names or homes differ by node.",
			Fix:     "Give each node its own user and paths.",
		},
		{
			ID: "firmware", Row: 103, Kind: Root,
			Any:     []string{"Kernel panic - not syncing", "DOE: "},
			Pattern: `Kernel panic - not syncing|DOE: .*(?:ABORT|[Ff]ailed|timed out|[Tt]imeout)`,
			Message: "pci …: DOE: [2c8] failed to create mailbox; Kernel panic - not syncing",
			Cause:   "The kernel stopped, or a PCIe device's firmware did not answer at boot.",
			Fix:     "Update the firmware (`fwupdmgr update`), and take the power away for a minute.",
		},
	}
}

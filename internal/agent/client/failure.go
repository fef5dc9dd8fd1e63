package client

import (
	"fmt"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// StartKind is a class of failures to start the agent on a node, each with its own next step.
type StartKind int

// The classes.
const (
	// StartPlatform: the node runs another system, or has another processor, than the agent is made for.
	StartPlatform StartKind = iota
	// StartNotBuilt: this build carries no agent for the node's processor.
	StartNotBuilt
	// StartNoFolder: no folder of the node takes the program.
	StartNoFolder
	// StartFolder: the folder that the user chose does not take the program.
	StartFolder
	// StartBadFolder: the folder that the user chose cannot be one.
	StartBadFolder
	// StartCut: the program did not arrive whole.
	StartCut
	// StartUnrunnable: the program arrived whole and does not run.
	StartUnrunnable
	// StartCleaned: the program was stored and is gone.
	StartCleaned
	// StartProtocol: the agent speaks another protocol.
	StartProtocol
	// StartNoAnswer: the command ended without a line of ours, so the login shell did not run it.
	StartNoAnswer
	// StartSilent: neither an answer nor an end.
	StartSilent
)

// StartError is a failure to start the agent; Err is its cause, if there is one below it.
type StartError struct {
	Kind    StartKind
	Message string
	Err     error
}

// Error implements error.
func (e *StartError) Error() string {
	switch {
	case e.Err == nil:
		return e.Message
	case e.Message == "":
		return e.Err.Error()
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Advice is the next step.
func (e *StartError) Advice() string {
	switch e.Kind {
	case StartPlatform:
		return "The host must be a machine with Linux on aarch64, as a DGX Spark, or x86_64: check its address."
	case StartNotBuilt:
		return "Use a released provider, or build it with `make build`."
	case StartNoFolder:
		return "Make one of these folders writable for the login user, free space in it, or name another one with agent_dir: it needs 10 MB, and programs must be allowed to run there (findmnt -T <folder> shows noexec)."
	case StartFolder:
		return "Make the folder writable for the login user, free space in it, or name another one with agent_dir: it needs 10 MB, and programs must be allowed to run there (findmnt -T <folder> shows noexec). Without agent_dir the provider looks for a folder by itself."
	case StartBadFolder:
		return "Write agent_dir as an absolute path, or one below ~/, without quotes, dollar and exclamation marks; or leave it out."
	case StartCut:
		return "The connection or a program in the node's PATH cut the upload. Try again; if it stays, run `cat` over ssh with a large file and compare."
	case StartUnrunnable:
		return "Run the program there by hand (<file> version) and look for what forbids it: AppArmor, SELinux, fapolicyd, or an antivirus."
	case StartCleaned:
		return "Name a folder with agent_dir that nothing tidies."
	case StartProtocol:
		return "Something else than this provider started that agent: look for command= in authorized_keys or ForceCommand in sshd_config there."
	case StartNoAnswer:
		return "Log in with ssh and run `ssh <user>@<host> sh -c true`: it must end without an error. The user needs a login shell (getent passwd <user>), and neither command= in authorized_keys nor ForceCommand in sshd_config may put another command in its place."
	case StartSilent:
		return "Run `ssh <user>@<host> true`: it must end by itself. A start file of the login shell (.bashrc, .zshenv, config.fish) that starts another shell or asks something must do so for interactive shells only: [[ $- == *i* ]]."
	}
	return ""
}

func wrongProtocol(spoken int) error {
	return &StartError{Kind: StartProtocol, Message: fmt.Sprintf("the agent on the node speaks protocol %d, this build speaks %d", spoken, agent.ProtocolVersion)}
}

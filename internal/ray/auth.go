package ray

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/engine"
	"github.com/spark-stack/terraform-provider-spark/internal/fleet"
	"github.com/spark-stack/terraform-provider-spark/internal/image"
)

// Who may talk to Ray: without a token everybody who reaches the GCS port can run code in the
// cluster. Ray has token authentication since 2.52; an older one ignores the variables.
const (
	AuthToken = "token"
	AuthNone  = "none"
)

// Where the token lies in the containers. On the nodes it is a secret of the agent's; the folder is
// mounted and not the file, so that a new token is seen in there.
const (
	secretTarget = "/run/spark-stack/ray" //nolint:gosec // A path.
	// TokenPath is the token's file in the containers.
	TokenPath = secretTarget + "/" + agent.RayTokenFile
)

// secretBytes is the length of a secret before it is written in hex.
const secretBytes = 32

// Ray's variables. RAY_AUTH_TOKEN goes before the file, so a value that an image brings along is
// emptied, which Ray (2.60, tried) reads as unset.
const (
	authMode      = "RAY_AUTH_MODE"
	authToken     = "RAY_AUTH_TOKEN"      //nolint:gosec // The variable's name.
	authTokenPath = "RAY_AUTH_TOKEN_PATH" //nolint:gosec // As above.
)

// AuthNames are Ray's variables of authentication, which the provider sets.
func AuthNames() []string { return []string{authMode, authToken, authTokenPath} }

// authEnv is how a container learns whether to authenticate. Newer releases turn it on by themselves
// where they find a token, so off is said aloud, too.
func authEnv(spec Spec) map[string]string {
	if spec.Authentication != AuthToken {
		return map[string]string{authMode: "disabled"}
	}
	return map[string]string{authMode: "token", authToken: "", authTokenPath: TokenPath}
}

// SecretMount brings a cluster's token into a container on the node whose facts are given.
func SecretMount(cluster string, facts agent.Facts) engine.Mount {
	return engine.Mount{Source: path.Join(facts.User.Home, agent.SecretFolder, path.Dir(agent.RayToken(cluster))), Target: secretTarget, ReadOnly: true}
}

// newSecret is a new secret in hex: a token, or that of a transfer.
func newSecret() string {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // It never fails; crypto/rand ends the program first.
	return hex.EncodeToString(secret)
}

// usesFile says whether a head's container takes the token from the node's file.
func usesFile(head engine.Container) bool {
	return head.Spec.Env[authMode] == "token" && head.Spec.Env[authToken] == "" && head.Spec.Env[authTokenPath] == TokenPath
}

// readToken reads a cluster's token on one node. found without a value says that it may not be seen.
func readToken(ctx context.Context, cluster string, machine fleet.Machine) (value string, found bool, err error) {
	helper, err := machine.Agent(ctx)
	if err != nil {
		return "", false, err
	}
	if helper.ReadOnly() {
		return "", true, nil
	}
	return helper.ReadSecret(ctx, agent.RayToken(cluster))
}

// writeTokens gives each new container its token before it starts: a new one with a new head, the
// head's to workers alone.
func (a *applier) writeTokens(ctx context.Context) error {
	if a.spec.Authentication != AuthToken {
		return nil
	}
	head, _ := a.spec.head()
	token := newSecret()
	if _, replaced := a.replace[head.Host]; !replaced {
		value, found, err := readToken(ctx, a.spec.Name, a.machines[head.Host])
		if err == nil && !found {
			err = errNoToken
		}
		if err != nil {
			return &Error{Host: head.Host, Step: "read Ray's token", Cause: err, Advice: "Plan again: a head without its token is replaced."}
		}
		token = value
	}
	members := append(a.replaced(Head), a.replaced(Worker)...)
	return onEach(ctx, members, a.machines, func(ctx context.Context, member Member, machine fleet.Machine) error {
		helper, err := machine.Agent(ctx)
		if err == nil {
			err = helper.WriteSecret(ctx, agent.RayToken(a.spec.Name), token)
		}
		if err != nil {
			return &Error{Host: member.Host, Step: "write Ray's token", Cause: err,
				Advice: "It is kept in ~/" + agent.SecretFolder + " of the login user, who must be able to write there."}
		}
		return nil
	})
}

// errNoToken is a node whose file is gone.
var errNoToken = errors.New("the file with Ray's token is gone")

// removeToken removes a cluster's token from a node.
func removeToken(ctx context.Context, cluster string, machine fleet.Machine) error {
	helper, err := machine.Agent(ctx)
	if err == nil {
		err = helper.RemoveSecret(ctx, agent.RayToken(cluster))
	}
	if err != nil {
		return &Error{Host: machine.Host(), Step: "remove Ray's token", Cause: err}
	}
	return nil
}

// tokenDrift compares the tokens of the nodes with the head's; head and node are as they were read.
func tokenDrift(spec Spec, member Member, found, head look) []string {
	switch {
	case spec.Authentication != AuthToken || !found.exists:
		return nil
	case !found.hasToken:
		return []string{"Ray's token is gone (~/" + path.Join(agent.SecretFolder, agent.RayToken(spec.Name)) + ")"}
	case member.Role == Worker && head.token != "" && found.token != "" && found.token != head.token:
		return []string{"Ray's token is not the head's"}
	}
	return nil
}

// protection is the gate's part of the token: a Ray that has authentication and takes a call without
// the token is as open as one that has none.
func protection(spec Spec, contents image.Contents, open bool) []Finding {
	if spec.Authentication != AuthToken || !open || !contents.HasTokens() {
		return nil
	}
	return []Finding{{Fault: Unprotected, Sentence: fmt.Sprintf(
		"Ray %s answers at %s without the token: everybody who reaches the port can run code in the cluster", contents.Ray, Address(spec))}}
}

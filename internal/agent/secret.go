package agent

import "context"

// SecretFolder is where secrets lie on a node, below the login user's home. The agent's own folder is
// a cache that anybody may clear; this one is not.
const SecretFolder = ".config/spark-stack" //nolint:gosec // A folder, and no secret.

// RayTokenFile is the file with a Ray cluster's token, alone in a folder.
const RayTokenFile = "auth_token"

// RayToken is the name of the secret with a Ray cluster's token, which an agent puts into questions to
// the GCS for who may not see it.
func RayToken(cluster string) string { return "ray/" + cluster + "/" + RayTokenFile }

// Secrets are small files of the login user that nobody else may read (0600, in folders with 0700),
// below SecretFolder. A name is a path there, such as "ray/pair/auth_token".
type Secrets interface {
	// ReadSecret returns the content; found is false if there is no such file.
	ReadSecret(ctx context.Context, name string) (value string, found bool, err error)
	// WriteSecret writes the file at once or not at all.
	WriteSecret(ctx context.Context, name, value string) error
	// RemoveSecret removes the file, and its folders if nothing else is in them. One that is gone is
	// no error.
	RemoveSecret(ctx context.Context, name string) error
}

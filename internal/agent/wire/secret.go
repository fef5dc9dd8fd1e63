package wire

// The calls for secrets.
const (
	PathSecretRead   = "/secret/read"
	PathSecretWrite  = "/secret/write"
	PathSecretRemove = "/secret/remove"
)

// SecretRequest is the body of the calls for secrets; Value is for writing.
type SecretRequest struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// SecretAnswer is the answer of reading.
type SecretAnswer struct {
	Value string `json:"value,omitempty"`
	Found bool   `json:"found"`
}

package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/wire"
)

func TestSecrets(t *testing.T) {
	root := t.TempDir()
	s := &server{options: Options{PathRoot: root, User: &agent.User{Name: "aurora", Home: "/home/aurora"}}}
	folder := filepath.Join(root, "home/aurora", agent.SecretFolder)
	const name = "ray/pair/auth_token"
	if answer, err := s.readSecret(t.Context(), wire.SecretRequest{Name: name}); err != nil || answer.Found {
		t.Fatalf("a secret that is not there: %+v, %v", answer, err)
	}
	for _, value := range []string{"first", "second"} {
		if _, err := s.writeSecret(t.Context(), wire.SecretRequest{Name: name, Value: value}); err != nil {
			t.Fatal(err)
		}
		if answer, err := s.readSecret(t.Context(), wire.SecretRequest{Name: name}); err != nil || answer.Value != value {
			t.Fatalf("%+v, %v; want %q", answer, err, value)
		}
	}
	for path, want := range map[string]os.FileMode{"": 0o700, "ray": 0o700, "ray/pair": 0o700, name: 0o600} {
		info, err := os.Stat(filepath.Join(folder, path))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode().Perm(), err, want)
		}
	}
	if _, err := s.writeSecret(t.Context(), wire.SecretRequest{Name: "ray/other/auth_token", Value: "x"}); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{name, name, "ray/other/auth_token"} {
		if _, err := s.removeSecret(t.Context(), wire.SecretRequest{Name: gone}); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(filepath.Join(folder, "ray"))
		if exists := err == nil; exists != (gone == name) {
			t.Errorf("after removing %s: the folder of the others exists: %v", gone, exists)
		}
	}
	if _, err := os.Stat(filepath.Dir(folder)); err != nil {
		t.Errorf("the user's own .config was removed: %v", err)
	}
}

func TestSecretNames(t *testing.T) {
	s := &server{options: Options{PathRoot: t.TempDir(), User: &agent.User{Name: "aurora", Home: "/home/aurora"}}}
	for _, name := range []string{"", ".", "..", "../x", "ray/../../.ssh/authorized_keys", "/etc/passwd", "ray//x", "ray/.x", "ray/x/", "a b", "ray/x\n"} {
		if _, err := s.writeSecret(t.Context(), wire.SecretRequest{Name: name, Value: "x"}); err == nil {
			t.Errorf("%q was written", name)
		}
		if _, err := s.readSecret(t.Context(), wire.SecretRequest{Name: name}); err == nil {
			t.Errorf("%q was read", name)
		}
		if _, err := s.removeSecret(t.Context(), wire.SecretRequest{Name: name}); err == nil {
			t.Errorf("%q was removed", name)
		}
	}
	for _, value := range []string{"", strings.Repeat("x", maxSecret+1)} {
		if _, err := s.writeSecret(t.Context(), wire.SecretRequest{Name: "ray/x/auth_token", Value: value}); err == nil {
			t.Errorf("%d bytes were written", len(value))
		}
	}
}

//go:build lab

package sshx

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestLabConfigReading compares our own reading of ssh_config, which counts where there is no ssh client, with
// that of the client.
func TestLabConfigReading(t *testing.T) {
	program := sshProgram()
	if program == "" {
		t.Fatal("the ssh client is missing")
	}
	included := filepath.Join(t.TempDir(), "more.conf")
	if err := os.WriteFile(included, []byte("User included\nHost nobody\nPort 4\nHost spark\nPort 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"first value counts":    "Host sp*\nPort 1\nHost spark\nPort 2\nUser a\n",
		"negation":              "Host * !spark\nPort 1\nHost spark\nPort 2\n",
		"equals and quotes":     "HostName=\"10.0.0.1\"\nUser = 'me too'\nport=7\nIdentityFile \"/a b/c\"\n",
		"comments":              "# Port 1\nPort 2 # Port 3\n  User x # y\n",
		"case":                  "HOST spark\nHOSTNAME ten\nPoRt 3\n",
		"files add up":          "IdentityFile /a\nHost spark\nIdentityFile /b\nCertificateFile /c\nCertificateFile /d\n",
		"known hosts":           "UserKnownHostsFile /a /b\nGlobalKnownHostsFile /c\nStrictHostKeyChecking accept-new\n",
		"jump before command":   "ProxyJump a,b@c:1\nProxyCommand nc %h %p\n",
		"command before jump":   "ProxyCommand nc \"%h\" %p\nProxyJump a\n",
		"no jump":               "ProxyJump none\nHost *\nProxyJump a\n",
		"agent and alias":       "IdentityAgent none\nIdentitiesOnly yes\nHost *\nIdentitiesOnly no\nHostKeyAlias x\nAddressFamily inet6\n",
		"match all":             "Match all\nPort 1\n",
		"match host":            "HostName ten\nMatch host ten\nPort 1\nMatch originalhost spark\nUser a\nMatch host spark\nUser b\n",
		"match user":            "User me\nMatch user me,you\nPort 1\nMatch !user me\nPort 2\n",
		"match user and host":   "Match host spark user nobody\nPort 1\nMatch host \"sp*,other\"\nPort 2\n",
		"include":               "Host other\nInclude " + included + "\nHost *\nPort 6\n",
		"include that counts":   "Include " + included + "\nPort 6\n",
		"include in its block":  "Host spark\nInclude " + included + "\nUser late\nHost *\nHostName ten\n",
		"include nothing":       "Include /nonexistent/*\nPort 3\n",
		"percent in the name":   "HostName %h.example.com\n",
		"others' options":       "ForwardAgent yes\nServerAliveInterval 5\nSendEnv LANG LC_*\nPort 9\n",
		"space before keywords": "\t Host\t spark \n\t\tPort\t3\t\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			q := query{host: "spark"}
			want, err := ask(t.Context(), program, q, file, []string{file})
			if err != nil {
				t.Fatal(err)
			}
			own := evaluation{query: q}
			directives, warnings := readConfig(file, 0)
			own.apply(directives, true)
			if len(warnings)+len(own.warnings) > 0 {
				t.Errorf("warnings: %q %q", warnings, own.warnings)
			}
			got := own.settings
			got.hostName = strings.ReplaceAll(cmp.Or(got.hostName, "spark"), "%h", "spark")
			got.user, got.port = cmp.Or(got.user, localUser()), cmp.Or(got.port, 22)
			got.addressFamily, got.hostKeyChecking = cmp.Or(got.addressFamily, "any"), cmp.Or(got.hostKeyChecking, "ask")
			if got.proxyJump == "none" {
				got.proxyJump = "" // as the client prints it
			}
			if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(settings{})); diff != "" {
				t.Errorf("ssh -, own +:\n%s", diff)
			}
		})
	}
}

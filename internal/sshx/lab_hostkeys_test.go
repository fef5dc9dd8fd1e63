//go:build lab

package sshx

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/sshtest"
)

// TestLabKnownHosts compares our verdict on a known_hosts file with that of the ssh client, line by line.
func TestLabKnownHosts(t *testing.T) {
	isolate(t)
	key, authority, stranger := sshtest.NewKey(t, sshtest.KeyOptions{}), sshtest.NewKey(t, sshtest.KeyOptions{}), sshtest.NewKey(t, sshtest.KeyOptions{Type: "ecdsa"})
	ed, rsa := sshtest.NewKey(t, sshtest.KeyOptions{}), sshtest.NewKey(t, sshtest.KeyOptions{Type: "rsa", Bits: 2048})
	certificate := ed.Certify(t, authority, sshtest.CertificateOptions{Host: true, Principals: []string{"127.0.0.1", "my-spark"}})
	s := sshtest.Start(t, sshtest.Options{
		AuthorizedKeys: []string{key.Public}, HostKeys: []sshtest.Key{ed, rsa}, HostCertificates: []string{certificate},
	})
	port := fmt.Sprintf("[%s]:%d", s.Host, s.Port)
	// ssh checks the bare name before it looks at a certificate's key by itself, which we do not follow.
	const stricter = "changed, bare name right"
	tests := map[string]struct {
		lines []string
		want  Kind // -1: connects
	}{
		"key":                        {[]string{port + " " + ed.Public}, -1},
		"other key of the host":      {[]string{port + " " + rsa.Public}, -1},
		"comment and broken lines":   {[]string{"# hosts", "rubbish", port + " ssh-ed25519 ????", port + " " + ed.Public + " root@spark"}, -1},
		"without the port":           {[]string{s.Host + " " + ed.Public}, -1},
		"wildcard":                   {[]string{"127.0.*,[127.0.0.?]:* " + ed.Public}, -1},
		"star":                       {[]string{"* " + ed.Public}, -1},
		"several names":              {[]string{"a,b," + port + " " + ed.Public}, -1},
		"negated":                    {[]string{"*,!" + port + ",!127.0.0.1 " + ed.Public}, UnknownHostKey},
		"another host":               {[]string{"[127.0.0.2]:22 " + ed.Public}, UnknownHostKey},
		"another port":               {[]string{"[127.0.0.1]:1 " + ed.Public}, UnknownHostKey},
		"changed":                    {[]string{port + " " + stranger.Public}, ChangedHostKey},
		"one of two":                 {[]string{port + " " + stranger.Public, port + " " + ed.Public}, -1},
		stricter:                     {[]string{port + " " + authority.Public, s.Host + " " + ed.Public}, ChangedHostKey},
		"other type, bare right":     {[]string{port + " " + stranger.Public, s.Host + " " + ed.Public}, -1},
		"bare name changed":          {[]string{s.Host + " " + stranger.Public}, UnknownHostKey},
		"authority":                  {[]string{"@cert-authority * " + authority.Public}, -1},
		"authority of other hosts":   {[]string{"@cert-authority *.example.com " + authority.Public}, UnknownHostKey},
		"another authority":          {[]string{"@cert-authority * " + stranger.Public}, UnknownHostKey},
		"authority as plain key":     {[]string{port + " " + authority.Public}, ChangedHostKey},
		"key of a host as authority": {[]string{"@cert-authority * " + ed.Public}, UnknownHostKey},
		"revoked":                    {[]string{"@revoked * " + ed.Public, port + " " + ed.Public}, RevokedHostKey},
		"revoked elsewhere":          {[]string{"@revoked other.example.com " + ed.Public, port + " " + ed.Public}, -1},
		"revoked authority":          {[]string{"@revoked * " + authority.Public, "@cert-authority * " + authority.Public}, RevokedHostKey},
		"upper case":                 {[]string{strings.ToUpper("LOCALHOST") + "," + port + " " + ed.Public}, -1},
		"unknown marker":             {[]string{"@odd " + port + " " + ed.Public, port + " " + ed.Public}, -1},
		"empty":                      {[]string{""}, UnknownHostKey},
	}
	hash := sshtest.KnownHosts(t, port+" "+ed.Public)
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-H", "-f", hash).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	verdict := func(t *testing.T, file string) (Kind, error) {
		config := configFor(t, s, key)
		config.KnownHostsFiles = []string{file}
		c, err := Dial(t.Context(), config)
		if err != nil {
			return kindOf(err), err
		}
		return -1, c.Close()
	}
	t.Run("hashed", func(t *testing.T) {
		if got, err := verdict(t, hash); got != -1 {
			t.Error(err)
		}
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := sshtest.KnownHosts(t, test.lines...)
			got, err := verdict(t, file)
			if got != test.want {
				t.Errorf("kind %d, want %d: %v", got, test.want, err)
			}
			out, err := exec.CommandContext(t.Context(), "ssh", "-F", "none", "-i", key.File, "-p", fmt.Sprint(s.Port), "-o", "BatchMode=yes",
				"-o", "StrictHostKeyChecking=yes", "-o", "GlobalKnownHostsFile=none", "-o", "UserKnownHostsFile="+file, s.User+"@"+s.Host, "true").CombinedOutput()
			if (err == nil) != (test.want == -1) && name != stricter {
				t.Errorf("ssh thinks otherwise: %v\n%s", err, out)
			}
		})
	}
}

// TestLabHostKeyPolicies: accept-new takes an unknown host, off takes any and warns, and neither writes a file.
func TestLabHostKeyPolicies(t *testing.T) {
	s, _, config := realServer(t, sshtest.Options{})
	stranger := sshtest.NewKey(t, sshtest.KeyOptions{})
	wrong := fmt.Sprintf("[%s]:%d %s", s.Host, s.Port, stranger.Public)
	file := sshtest.KnownHosts(t)
	config.KnownHostsFiles, config.HostKeyPolicy, config.Shared = []string{file}, HostKeyAcceptNew, &Shared{}
	for range 2 {
		if c := wantConnection(t, config); len(c.Warnings()) > 0 {
			t.Errorf("warnings: %q", c.Warnings())
		}
	}
	if content, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(content)) != "" {
		t.Errorf("known_hosts was written: %q, %v", content, err)
	}
	config.KnownHostsFiles, config.Shared = []string{sshtest.KnownHosts(t, wrong)}, nil
	wantKind(t, config, ChangedHostKey, stranger.Fingerprint)
	config.HostKeyPolicy = HostKeyOff
	if c := wantConnection(t, config); len(c.Warnings()) != 1 || !strings.Contains(c.Warnings()[0], "is not checked") {
		t.Errorf("warnings: %q", c.Warnings())
	}
}

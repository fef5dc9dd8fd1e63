package sshx

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseJump(t *testing.T) {
	tests := map[string]struct {
		want jumpHost
		bad  bool
	}{
		"bastion":                 {want: jumpHost{host: "bastion"}},
		"u@bastion:2222":          {want: jumpHost{"u", "bastion", 2222}},
		"ssh://u@bastion:2222":    {want: jumpHost{"u", "bastion", 2222}},
		"ssh://bastion/":          {want: jumpHost{host: "bastion"}},
		"u@domain@10.0.0.1":       {want: jumpHost{user: "u@domain", host: "10.0.0.1"}},
		"[fd00::1]:22":            {want: jumpHost{host: "fd00::1", port: 22}},
		"[fd00::1]":               {want: jumpHost{host: "fd00::1"}},
		"u@fd00::1":               {want: jumpHost{user: "u", host: "fd00::1"}},
		" bastion ":               {want: jumpHost{host: "bastion"}},
		"":                        {bad: true},
		"u@":                      {bad: true},
		"@bastion":                {bad: true},
		"bastion:":                {bad: true},
		"bastion:0":               {bad: true},
		"bastion:65536":           {bad: true},
		"bastion:ssh":             {bad: true},
		"-oProxyCommand=evil":     {bad: true},
		"two words":               {bad: true},
		"[fd00::1":                {bad: true},
		"bastion/path":            {bad: true},
		"u@-oProxyCommand=x":      {bad: true},
		"ssh://u@bastion:22/path": {bad: true},
	}
	for text, test := range tests {
		got, err := parseJump(text)
		if (err != nil) != test.bad || !test.bad && got != test.want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := parseJump(got.String()); !test.bad && (err != nil || again != got) {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	jumps, direct, err := parseJumps([]string{"a,b", "c"})
	if len(jumps) != 3 || direct || err != nil {
		t.Errorf("%v, %v, %v", jumps, direct, err)
	}
	if jumps, direct, err := parseJumps([]string{"none"}); jumps != nil || !direct || err != nil {
		t.Errorf("%v, %v, %v", jumps, direct, err)
	}
	if _, _, err := parseJumps([]string{"a,,b"}); err == nil {
		t.Error("an empty entry was taken")
	}
}

func FuzzParseJump(f *testing.F) {
	for _, seed := range []string{"bastion", "u@h:22", "[::1]:2", "ssh://a@b:1/", "-o", "a@b@c", "[", "::", "[]]", "a:b:c", "0\v/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		jump, err := parseJump(text)
		if err != nil {
			return
		}
		if strings.HasPrefix(jump.host, "-") || jump.host == "" || jump.port < 0 || jump.port > 65535 {
			t.Errorf("%q became %+v", text, jump)
		}
		if again, err := parseJump(jump.String()); err != nil || again.host != jump.host || again.port != jump.port {
			t.Errorf("%q became %+v, written %q, read %+v: %v", text, jump, jump.String(), again, err)
		}
	})
}

func FuzzKnownHosts(f *testing.F) {
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGqzVZpPOwOPX9r/dlq6dBkdcGm0oaHuwDjXP1tgPxJA"
	for _, seed := range []string{
		"host " + key, "@revoked * " + key, "@cert-authority *.x,!a.x " + key + " comment", "[h]:22 " + key,
		"|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= " + key, "# x", "@ x y z", "|1|", "h ssh-rsa AAAA",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		keys, err := parseKnownHosts(content, "file")
		if err != nil && len(keys) > 0 {
			t.Error("keys and an error")
		}
		for _, known := range keys {
			_ = known.names("host")
			if known.key == nil || known.place == "" {
				t.Errorf("%+v", known)
			}
		}
	})
}

func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		"Host a b !c\n Port 22\n", "Match host a,b user c\nUser d", "HostName=\"x y\" # z", "Include /nonexistent/*", "Port 99999", "Match exec \"true\"", "IdentityFile '",
	} {
		f.Add([]byte(seed), "host")
	}
	f.Fuzz(func(t *testing.T, content []byte, host string) {
		directives, _ := parseConfig(content, "file", maxIncludes)
		e := evaluation{query: query{host: host}}
		e.apply(directives, true)
		if e.settings.port < 0 || e.settings.port > 65535 {
			t.Errorf("port %d", e.settings.port)
		}
	})
}

func TestPatterns(t *testing.T) {
	tests := []struct {
		subject, patterns string
		want              bool
	}{
		{"spark-1", "spark-?", true},
		{"spark-12", "spark-?", false},
		{"spark-12", "spark-*", true},
		{"a.b.c", "*.c", true},
		{"a.b.c", "a*b*c", true},
		{"abc", "*", true},
		{"", "*", true},
		{"abc", "abc*", true},
		{"abc", "a*d", false},
		{"abc", "*,!abc", false},
		{"abc", "!abc,*", false},
		{"abd", "*,!abc", true},
		{"abc", "!abd", false},
		{"abc", "", false},
		{strings.Repeat("a", 500), strings.Repeat("*a", 40) + "b", false},
	}
	for _, test := range tests {
		if got := matchesPatterns(test.subject, strings.Split(test.patterns, ",")); got != test.want {
			t.Errorf("%q against %q: %v", test.subject, test.patterns, got)
		}
	}
}

func TestParseAnswer(t *testing.T) {
	got, err := parseAnswer("host spark\nuser root\nhostname 10.0.0.1\nport 2200\naddressfamily any\nidentitiesonly yes\n" +
		"identityfile ~/.ssh/with space\nidentityfile ~/.ssh/id_rsa\ncertificatefile ~/.ssh/c\nidentityagent SSH_AUTH_SOCK\n" +
		"globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2\nuserknownhostsfile /a /b\nstricthostkeychecking ask\nproxyjump a,b\nproxycommand nc %h %p\n")
	want := settings{
		hostName: "10.0.0.1", user: "root", port: 2200, addressFamily: "any", identityFiles: []string{"~/.ssh/with space", "~/.ssh/id_rsa"},
		certificateFiles: []string{"~/.ssh/c"}, identitiesOnly: true, identityAgent: "SSH_AUTH_SOCK", proxyJump: "a,b", hostKeyChecking: "ask", userKnownHosts: []string{"/a", "/b"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{})); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := parseAnswer("identityfile ~/.ssh/id_rsa\nidentityfile ~/.ssh/id_ed25519\nuserknownhostsfile /root/.ssh/known_hosts /root/.ssh/known_hosts2\n"); err != nil || got.identityFiles != nil || got.userKnownHosts != nil {
		t.Errorf("defaults are taken for settings: %+v, %v", got, err)
	}
	if _, err := parseAnswer("port many\n"); err == nil {
		t.Error("a port that is none was taken")
	}
}

func TestTokens(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	t.Setenv("KEYS", "/keys")
	names := newTokens("spark", "10.0.0.1", 2200, "them", "")
	tests := map[string]string{
		"%n %h %p %r %k %% %d": "spark 10.0.0.1 2200 them spark % /home/me",
		"~/.ssh/%r_${KEYS}":    "/home/me/.ssh/them_/keys",
		"plain":                "plain",
	}
	for text, want := range tests {
		if got, err := names.expand(text, true); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"%", "%C", "${MISSING_HERE}"} {
		if got, err := names.expand(text, true); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
}

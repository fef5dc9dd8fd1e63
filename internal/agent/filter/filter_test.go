package filter_test

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent/filter"
)

func TestEnginePassesWhatAPlanReads(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for target, want := range map[string]filter.EngineRequest{
		"/_ping":                                  {Question: filter.Ping},
		"/v1.47/_ping":                            {Question: filter.Ping, API: "1.47"},
		"/version":                                {Question: filter.Version},
		"/v1.41/containers/json?all=1":            {Question: filter.List, API: "1.41"},
		"/containers/json":                        {Question: filter.List},
		"/v1.51/containers/ray-pair/json":         {Question: filter.Container, API: "1.51", Name: "ray-pair"},
		"/containers/json/json":                   {Question: filter.Container, Name: "json"},
		"/images/" + digest + "/json":             {Question: filter.Image, Name: digest},
		"/images/vllm/json":                       {Question: filter.Image, Name: "vllm"},
		"/images/get/json":                        {Question: filter.Image, Name: "get"},
		"/images/r.example:5000/a/b:1/json":       {Question: filter.Image, Name: "r.example:5000/a/b:1"},
		"/v1.47/images/a/b:1@" + digest + "/json": {Question: filter.Image, API: "1.47", Name: "a/b:1@" + digest},
	} {
		got, err := filter.Engine(http.MethodGet, target)
		if err != nil {
			t.Errorf("%s: %v", target, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
	}
	if got, err := filter.Engine(http.MethodHead, "/_ping"); err != nil || got.Path() != "/_ping" {
		t.Errorf("HEAD /_ping: %v, %v", got, err)
	}
}

// evil are targets that look like a question and lead elsewhere.
var evil = []string{
	"", "/", "*", "_ping", "//_ping", "/_ping/", "/_ping?x", "/_ping#", "/_PING", "/v1.47", "/v1.47/", "/v2.0/_ping", "/v1.47/v1.47/_ping", "/v1.9999/_ping",
	// other calls
	"/events", "/info", "/system/df", "/images/json", "/images/get?names=a", "/images/a/get", "/images/a/history", "/images/search?term=a", "/volumes", "/networks", "/swarm",
	"/containers/a/logs", "/containers/a/logs?follow=1&stdout=1", "/containers/a/archive?path=/", "/containers/a/export", "/containers/a/attach/ws", "/containers/a/top",
	"/containers/a/stats", "/containers/a/changes", "/exec/a/json", "/plugins", "/secrets", "/configs", "/tasks/a/logs", "/session", "/grpc", "/distribution/a/json",
	// queries
	"/containers/json?all=1&size=1", "/containers/json?size=1", "/containers/json?filters={}", "/containers/json?all=1;x", "/containers/json?", "/containers/json?all=1#x",
	"/containers/a/json?size=1", "/containers/a/json?", "/images/a/json?manifests=1", "/containers/a/json?follow=1",
	// paths that a server may read in another way
	"/containers/../images/json", "/containers/a/../../events", "/containers/./json", "/containers/..%2fevents/json", "/containers/%2e%2e/json", "/containers/a%2Farchive%3F/json",
	"/containers/a%00/json", "/containers/a\x00/json", "/containers/a\n/json", "/containers/a b/json", "/containers//json", "/containers/a//json", "/containers/a/json/", "/containers/a/json;x",
	"/containers/a;x/json", "/containers/a\\..\\b/json", "/containers/a/b/json", "/containers/.hidden/json", "/containers/-a/json", "/CONTAINERS/json", "/containers/ä/json",
	"/images/../containers/a/archive/json", "/images/a/../../containers/a/export?/json", "/images/a//b/json", "/images//a/json", "/images/a/./json", "/images/.a/json", "/images/a%2fb/json",
	"/images/a?/json", "/images/a#/json", "/images/a;b/json", "/images/a/../json", "/images/a b/json", "/images/a\r\nHost: x/json",
	// absolute forms
	"http://docker/_ping", "http://evil.example/_ping", "//evil.example/containers/json", "unix:/_ping", "docker:80",
	"/v1.47//containers/json", "/v1.47/../containers/json", "/v1.47%2fcontainers/json", "/v1.047x/containers/json",
}

func TestEngineRefusesAllElse(t *testing.T) {
	for _, target := range evil {
		if got, err := filter.Engine(http.MethodGet, target); !isRefused(err) {
			t.Errorf("GET %q passes as %q (%v)", target, got.Path(), err)
		}
	}
	for _, method := range []string{"", "get", "GET ", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PRI", "HEAD"} {
		for _, target := range []string{"/version", "/containers/json", "/containers/json?all=1", "/containers/a/json", "/images/a/json", "/containers/create", "/containers/a/exec", "/build"} {
			if _, err := filter.Engine(method, target); !isRefused(err) {
				t.Errorf("%q %s passes", method, target)
			}
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "CONNECT", "OPTIONS"} {
		if _, err := filter.Engine(method, "/_ping"); !isRefused(err) {
			t.Errorf("%s /_ping passes", method)
		}
	}
}

func isRefused(err error) bool {
	var refused *filter.RefusedError
	return errors.As(err, &refused) && err.Error() != ""
}

func TestProgram(t *testing.T) {
	for _, test := range []struct {
		method, target string
		want           filter.Protocol
	}{
		{"GET", "/health", filter.HTTP},
		{"GET", "/v1/models", filter.HTTP},
		{"GET", "/version", filter.HTTP},
		{"POST", "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo", filter.GRPC},
		{"POST", "/ray.rpc.autoscaler.AutoscalerStateService/GetClusterStatus", filter.GRPC},
		{"POST", "/ray.rpc.PlacementGroupInfoGcsService/GetAllPlacementGroup", filter.GRPC},
		{"POST", "/health", 0},
		{"HEAD", "/health", 0},
		{"GET", "/health/", 0},
		{"GET", "/health?x=1", 0},
		{"GET", "/health;x", 0},
		{"GET", "//health", 0},
		{"GET", "/v1/../health", 0},
		{"GET", "/%68ealth", 0},
		{"GET", "/metrics", 0},
		{"GET", "/v1/completions", 0},
		{"POST", "/v1/completions", 0},
		{"POST", "/sleep", 0},
		{"GET", "http://127.0.0.1:8000/health", 0},
		{"CONNECT", "127.0.0.1:22", 0},
		{"GET", "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo", 0},
		{"POST", "/ray.rpc.NodeInfoGcsService/DrainNode", 0},
		{"POST", "/ray.rpc.InternalKVGcsService/InternalKVGet", 0},
		{"POST", "/ray.rpc.InternalKVGcsService/InternalKVPut", 0},
		{"POST", "/ray.rpc.JobInfoGcsService/AddJob", 0},
		{"POST", "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo/", 0},
		{"POST", "/ray.rpc.NodeInfoGcsService/../NodeInfoGcsService/GetAllNodeInfo", 0},
		{"POST", "/Ray.rpc.NodeInfoGcsService/GetAllNodeInfo", 0},
	} {
		got, err := filter.Program(test.method, test.target)
		if got != test.want || (test.want == 0) != isRefused(err) {
			t.Errorf("%s %s: %v, %v", test.method, test.target, got, err)
		}
	}
}

func TestOwn(t *testing.T) {
	own := []netip.Addr{
		netip.MustParseAddr("10.1.230.180"), netip.MustParseAddr("192.168.200.12"), netip.MustParseAddr("fe80::1%enp1s0f0np0"),
		netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("224.0.0.1"),
	}
	for address, want := range map[string]string{
		"192.168.200.12:6379":            "192.168.200.12:6379",
		"127.0.0.1:8000":                 "127.0.0.1:8000",
		"127.8.9.10:1":                   "127.8.9.10:1",
		"[::1]:8000":                     "[::1]:8000",
		"[::ffff:192.168.200.12]:6379":   "192.168.200.12:6379",
		"[fe80::1]:80":                   "[fe80::1]:80",
		"192.168.200.13:6379":            "",
		"[::ffff:192.168.200.13]:6379":   "",
		"169.254.169.254:80":             "",
		"0.0.0.0:22":                     "",
		"[::]:22":                        "",
		"224.0.0.1:80":                   "",
		"localhost:8000":                 "",
		"spark-b:8000":                   "",
		"192.168.200.12":                 "",
		"192.168.200.12:0":               "",
		"192.168.200.12:99999":           "",
		"192.168.200.12:6379/x":          "",
		"192.168.200.12:6379@10.0.0.1:1": "",
		"0x7f.1:80":                      "",
		"2130706433:80":                  "",
		"127.1:80":                       "",
		"[fe80::1%enp1s0f0np0]:80":       "",
		"":                               "",
		"/var/run/docker.sock":           "",
		"unix:///var/run/docker.sock":    "",
	} {
		got, err := filter.Own(address, own)
		if want == "" && !isRefused(err) || want != "" && got.String() != want {
			t.Errorf("%s: %v, %v", address, got, err)
		}
	}
}

// FuzzFilter wants of each request that passes that every reading of it is the one that was meant.
func FuzzFilter(f *testing.F) {
	for _, target := range evil {
		f.Add("GET", target)
	}
	f.Add("HEAD", "/_ping")
	f.Add("GET", "/v1.47/containers/ray-pair/json")
	f.Add("GET", "/v1.47/images/r.example:5000/a/b:1@sha256:00/json")
	f.Add("POST", "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo")
	f.Fuzz(func(t *testing.T, method, target string) {
		if _, err := filter.Program(method, target); err == nil && (strings.ContainsAny(target, "?#%;") || path.Clean(target) != target) {
			t.Errorf("%q %q is passed to a program", method, target)
		}
		request, err := filter.Engine(method, target)
		if err != nil {
			return
		}
		if method != http.MethodGet && (method != http.MethodHead || request.Question != filter.Ping) {
			t.Errorf("%q passes", method)
		}
		sent := request.Path()
		parsed, err := url.ParseRequestURI(sent)
		if err != nil || parsed.Host != "" || parsed.RawPath != "" || parsed.Fragment != "" || path.Clean(parsed.Path) != parsed.Path {
			t.Fatalf("%q is sent as %q: %v", target, sent, err)
		}
		if parsed.RawQuery != "" && (parsed.RawQuery != "all=1" || request.Question != filter.List) {
			t.Errorf("%q is sent as %q", target, sent)
		}
		last := path.Base(parsed.Path)
		if last != "json" && last != "_ping" && last != "version" {
			t.Errorf("%q is sent as %q", target, sent)
		}
		if again, err := filter.Engine(method, sent); err != nil || again != request {
			t.Errorf("%q is sent as %q, which is read as %+v, %v", target, sent, again, err)
		}
	})
}

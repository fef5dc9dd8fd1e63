// Package filter decides what the agent passes on to the Docker engine and to programs on its node. It
// is a list of what a plan reads, and nothing else: an SSH key that may only look at a node holds to it,
// and what may change everything reads in the same way, so that each plan tries the list.
//
// A request is never passed on as it came. The filter reads method and target and says what they ask
// for; the agent then makes a request of its own.
package filter

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
)

// RefusedError is a request that is on no list.
type RefusedError struct {
	// Method and Target as asked, Why in words.
	Method, Target, Why string
}

// Error implements error.
func (e *RefusedError) Error() string {
	const longest = 200
	return fmt.Sprintf("the agent does not pass on %.20q %.*q: %s", e.Method, longest, e.Target, e.Why)
}

// Question is what a request to the engine asks for.
type Question int

// The questions.
const (
	// Ping is answered by headers alone.
	Ping Question = iota + 1
	Version
	// List is every container, running or not.
	List
	// Container and Image are about the one that is named.
	Container
	Image
)

// EngineRequest is a request to the engine that may be passed on.
type EngineRequest struct {
	Question Question
	// API is the version in the path, "1.47"; empty if it names none.
	API string
	// Name of the container or image.
	Name string
}

// longestTarget bounds a target, in bytes: a reference has at most 255 for the name, 128 for the tag and
// a digest.
const longestTarget = 1024

var (
	apiVersion = regexp.MustCompile(`^/v(1\.[0-9]{1,3})/`)
	// containerName is Docker's own rule for names, which ids fit too.
	containerName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)
	// imageReference is a host with a port, a path, a tag and a digest, as far as a filter needs to know:
	// no part of it begins with a dot, and nothing in it is escaped or a delimiter of URLs.
	imageReference = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:@-]*(/[a-zA-Z0-9][a-zA-Z0-9_.:@-]*)*$`)
)

// Engine reads a request to the Docker engine; target is path and query as on the wire.
func Engine(method, target string) (EngineRequest, error) {
	refuse := func(why string) (EngineRequest, error) {
		return EngineRequest{}, &RefusedError{Method: method, Target: target, Why: why}
	}
	if len(target) > longestTarget {
		return refuse("it is too long")
	}
	var request EngineRequest
	path, query, asked := strings.Cut(target, "?")
	if version := apiVersion.FindStringSubmatch(path); version != nil {
		request.API = version[1]
		path = path[len(version[0])-1:]
	}
	if path == "/_ping" && (method == http.MethodGet || method == http.MethodHead) {
		request.Question = Ping
	}
	if request.Question == 0 && method != http.MethodGet {
		return refuse("only GET is")
	}
	container, isContainer := between(path, "/containers/", "/json")
	image, isImage := between(path, "/images/", "/json")
	switch {
	case request.Question == Ping:
	case path == "/version":
		request.Question = Version
	case path == "/containers/json":
		request.Question = List
		// The whole list is what is asked for, so that no other query has a meaning.
		if asked && query != "all=1" && query != "all=true" {
			return refuse("the list is asked for with all=1 alone")
		}
		return request, nil
	case isContainer && containerName.MatchString(container):
		request.Question, request.Name = Container, container
	case isImage && imageReference.MatchString(image):
		request.Question, request.Name = Image, image
	default:
		return refuse("it is not what a plan reads")
	}
	if asked {
		return refuse("it has a query")
	}
	return request, nil
}

// Path is what the agent itself asks the engine for, with the API version if one was named.
func (r EngineRequest) Path() string {
	if r.API == "" {
		return r.Bare()
	}
	return "/v" + r.API + r.Bare()
}

// Bare is Path without a version.
func (r EngineRequest) Bare() string {
	switch r.Question {
	case Ping:
		return "/_ping"
	case Version:
		return "/version"
	case List:
		return "/containers/json?all=1"
	case Container:
		return "/containers/" + r.Name + "/json"
	case Image:
		return "/images/" + r.Name + "/json"
	}
	return ""
}

// between is what lies between a prefix and a suffix.
func between(text, prefix, suffix string) (string, bool) {
	rest, found := strings.CutPrefix(text, prefix)
	if !found {
		return "", false
	}
	return strings.CutSuffix(rest, suffix)
}

// Protocol is how a program is asked.
type Protocol int

// The protocols.
const (
	// HTTP is a GET over HTTP/1.1, answered by JSON or nothing.
	HTTP Protocol = iota + 1
	// GRPC is a call whose empty request means "all".
	GRPC
)

// What a plan asks a GCS of Ray. None of it needs the cluster's id.
const (
	GCSNodes  = "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo"
	GCSStatus = "/ray.rpc.autoscaler.AutoscalerStateService/GetClusterStatus"
	GCSGroups = "/ray.rpc.PlacementGroupInfoGcsService/GetAllPlacementGroup"
)

// Program reads a request to a program on the node.
func Program(method, target string) (Protocol, error) {
	switch target {
	case "/health", "/v1/models", "/version": // vLLM's
		if method == http.MethodGet {
			return HTTP, nil
		}
	case GCSNodes, GCSStatus, GCSGroups:
		if method == http.MethodPost {
			return GRPC, nil
		}
	}
	return 0, &RefusedError{Method: method, Target: target, Why: "it is not what a plan reads"}
}

// Own reads a program's address, which must be on the node itself: a literal address of one of its
// interfaces, or loopback, with a port.
func Own(address string, own []netip.Addr) (netip.AddrPort, error) {
	target, err := netip.ParseAddrPort(address)
	if err != nil || target.Port() == 0 || target.Addr().Zone() != "" {
		return netip.AddrPort{}, &RefusedError{Method: "connect", Target: address, Why: "it is no literal address with a port"}
	}
	asked := target.Addr().Unmap()
	if asked.IsLoopback() {
		return netip.AddrPortFrom(asked, target.Port()), nil
	}
	for _, one := range own {
		if one.Unmap().WithZone("") == asked && !asked.IsUnspecified() && !asked.IsMulticast() {
			return netip.AddrPortFrom(asked, target.Port()), nil
		}
	}
	return netip.AddrPort{}, &RefusedError{Method: "connect", Target: address, Why: "this node has no such address"}
}

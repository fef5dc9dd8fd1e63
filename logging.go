package main

// logged are the variables by which Terraform is told to keep what a provider logs.
var logged = []string{"TF_LOG", "TF_LOG_PROVIDER"}

// written are those by which the plugin libraries are told how much to write.
var written = []string{"TF_LOG_SDK", "TF_LOG_SDK_PROTO", "TF_LOG_SDK_FRAMEWORK", "TF_LOG_PROVIDER"}

// quiet turns off a log that nobody reads. Without a level the libraries write every trace line, and
// Terraform parses and drops it: with 64 nodes that is a quarter of what a plan computes.
func quiet(get func(string) string, set func(name, value string) error) error {
	for _, name := range logged {
		if get(name) != "" {
			return nil
		}
	}
	for _, name := range written {
		if get(name) != "" {
			continue
		}
		if err := set(name, "off"); err != nil {
			return err
		}
	}
	return nil
}

package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spark-stack/terraform-provider-spark/internal/clitest"
)

const repository = "../.."

// Types without the provider's prefix must say whose they are: else Terraform looks for providers
// named ray and vllm.
func TestEveryBlockNamesItsProvider(t *testing.T) {
	block := regexp.MustCompile(`(?ms)^( *)resource "(ray_cluster|vllm_deployment)" "\w+" \{.*?^ *\}$`)
	line := regexp.MustCompile(`(?m)^ *provider *= *spark\b`)
	files, blocks := 0, 0
	err := filepath.WalkDir(repository, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "build" || entry.Name() == ".git" || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if extension := filepath.Ext(path); entry.IsDir() || extension != ".tf" && extension != ".md" && extension != ".tmpl" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, found := range block.FindAllString(string(text), -1) {
			blocks++
			if !line.MatchString(found) {
				t.Errorf("%s: this block does not say provider = spark:\n%s", path, found)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 || blocks < 8 {
		t.Errorf("%d blocks in %d files were read: has the repository moved?", blocks, files)
	}
}

// Every example is a configuration that Terraform takes.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	folders := map[string][]string{}
	files, err := filepath.Glob(repository + "/examples/*/*.tf")
	if err != nil {
		t.Fatal(err)
	}
	nested, err := filepath.Glob(repository + "/examples/*/*/*.tf")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, nested...) {
		folders[filepath.Dir(file)] = append(folders[filepath.Dir(file)], file)
	}
	for folder, files := range folders {
		t.Run(strings.TrimPrefix(folder, repository+"/examples/"), func(t *testing.T) {
			ws := clitest.New(t, "", nil)
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(text), "required_providers") {
					if err := os.Remove(filepath.Join(ws.Dir, "main.tf")); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(ws.Dir, "example-"+filepath.Base(file)), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if result := ws.Run("validate", "-no-color"); result.Exit != 0 {
				t.Errorf("validate: exit %d\n%s", result.Exit, result.Text())
			}
		})
	}
}

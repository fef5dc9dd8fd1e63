package weights

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
)

// shown is a plan in short: "0 a>b config.json,…".
func shown(copies []Copy) []string {
	var lines []string
	for _, one := range copies {
		line := fmt.Sprintf("%d %s>%s", one.Wave, one.From, one.To)
		for _, file := range one.Files {
			line += " " + file.Name
		}
		lines = append(lines, line)
	}
	return lines
}

func TestPlan(t *testing.T) {
	manifest, _ := Accept("a", "", sharded())
	const one, two = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	rotten := sharded()
	rotten.Files[1].Damage = "cut"
	tests := map[string]struct {
		listings map[string]agent.Listing
		prefer   []string
		want     []string
	}{
		"nothing to do": {map[string]agent.Listing{"a": sharded(), "b": sharded()}, []string{"a", "b"}, nil},
		"all to one": {map[string]agent.Listing{"a": sharded(), "b": {}}, []string{"a", "b"},
			[]string{"0 a>b config.json " + one + " " + two + " model.safetensors.index.json"}},
		"one file":             {map[string]agent.Listing{"a": sharded(), "b": without(sharded(), two)}, []string{"a", "b"}, []string{"0 a>b " + two}},
		"the head is repaired": {map[string]agent.Listing{"a": rotten, "b": sharded()}, []string{"a", "b"}, []string{"0 b>a " + one}},
		"both ways":            {map[string]agent.Listing{"a": rotten, "b": without(sharded(), two)}, []string{"a", "b"}, []string{"0 b>a " + one, "0 a>b " + two}},
		"prefer order":         {map[string]agent.Listing{"a": sharded(), "b": sharded(), "c": without(sharded(), one)}, []string{"b", "c"}, []string{"0 b>c " + one}},
		"a chain, file by file": {map[string]agent.Listing{"a": sharded(), "b": {}, "c": {}}, []string{"a", "b", "c"}, []string{
			"0 a>b config.json", "1 a>b " + one, "1 b>c config.json", "2 a>b " + two, "2 b>c " + one,
			"3 a>b model.safetensors.index.json", "3 b>c " + two, "4 a>c model.safetensors.index.json",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Plan(manifest, test.listings, test.prefer)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, shown(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanWithoutSource(t *testing.T) {
	manifest, _ := Accept("a", "", sharded())
	const two = "model-00002-of-00002.safetensors"
	cut := sharded()
	cut.Files[2].Size = 1
	_, err := Plan(manifest, map[string]agent.Listing{"a": cut, "b": without(sharded(), two, "config.json")}, nil)
	var lost *NoSourceError
	if !errors.As(err, &lost) {
		t.Fatalf("got %v", err)
	}
	want := "no node has a good copy of " + two + " (a: 1 of 4000 bytes; b: missing)"
	if lost.Error() != want {
		t.Errorf("got  %s\nwant %s", lost, want)
	}
}

// Whatever is spread over whichever hosts, a plan completes all and obeys one transfer a direction.
func TestPlanCompletes(t *testing.T) {
	manifest := Manifest{}
	for i := range 24 {
		manifest.Files = append(manifest.Files, agent.File{Name: fmt.Sprintf("f%02d", i), Size: 100})
	}
	for hosts := 2; hosts <= 6; hosts++ {
		listings := map[string]agent.Listing{}
		for h := range hosts {
			listing := agent.Listing{}
			for i, file := range manifest.Files {
				if i%hosts == h || (i+1)%hosts == h && h%2 == 0 {
					listing.Files = append(listing.Files, file)
				}
			}
			listings[string(rune('a'+h))] = listing
		}
		copies, err := Plan(manifest, listings, nil)
		if err != nil {
			t.Fatal(err)
		}
		busy := map[string]bool{}
		for _, one := range copies {
			for _, key := range []string{fmt.Sprint(one.Wave, "from", one.From), fmt.Sprint(one.Wave, "to", one.To)} {
				if busy[key] {
					t.Errorf("%d hosts: %s twice", hosts, key)
				}
				busy[key] = true
			}
			source := Compare(Manifest{Files: one.Files}, listings[one.From])
			if source.Condition != Complete {
				t.Errorf("%d hosts: %s sends what it lacks", hosts, one.From)
			}
			listing := listings[one.To]
			listing.Files = append(listing.Files, one.Files...)
			listings[one.To] = listing
		}
		for host, listing := range listings {
			if Compare(manifest, listing).Condition != Complete {
				t.Errorf("%d hosts: %s is not complete", hosts, host)
			}
		}
	}
}

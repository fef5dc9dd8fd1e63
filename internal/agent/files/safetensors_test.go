package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shard makes a safetensors file of a header and a number of bytes of data.
func shard(header string, data int) []byte {
	content := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(content, header...), make([]byte, data)...)
}

const twoTensors = `{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[4,5],"data_offsets":[120,200]},"a":{"dtype":"BF16","shape":[60],"data_offsets":[0,120]}}`

func TestCheckSafetensors(t *testing.T) {
	tensor := func(dtype, shape string, begin, end int) string {
		return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}}`, dtype, shape, begin, end)
	}
	tests := map[string]struct {
		content []byte
		damage  string
	}{
		"whole":             {shard(twoTensors, 200), ""},
		"empty model":       {shard(`{}`, 0), ""},
		"scalar":            {shard(tensor("F64", "[]", 0, 8), 8), ""},
		"empty tensor":      {shard(tensor("F64", "[0,7]", 0, 0), 0), ""},
		"type of tomorrow":  {shard(tensor("F2_E1M0", "[8]", 0, 2), 2), ""},
		"cut in the data":   {shard(twoTensors, 120), "120 of 200 bytes of tensors"},
		"cut in the header": {shard(twoTensors, 0)[:50], fmt.Sprintf("header ends at byte %d, beyond the file's 50", 8+len(twoTensors))},
		"cut in the length": {[]byte{1, 2, 3}, "3 bytes, less than the 8 of the header's length"},
		"nothing":           {nil, "0 bytes, less than the 8 of the header's length"},
		"too long":          {shard(twoTensors, 220), "220 bytes of tensors where the header describes 200"},
		"eight zeros":       {make([]byte, 8), "header of 0 bytes is not a JSON object: unexpected end of JSON input"},
		"zeros":             {make([]byte, 64), "header of 0 bytes is not a JSON object: unexpected end of JSON input"},
		"a page of HTML":    {[]byte("<!DOCTYPE html>"), "header of 5789751444030890300 bytes, over the format's limit of 100000000"},
		"hole":              {shard(tensor("U8", "[8]", 4, 12), 12), `tensor "a" begins at byte 4 where the one before ends at 0`},
		"wrong shape":       {shard(tensor("BF16", "[8]", 0, 8), 8), `tensor "a" has 8 bytes, its shape needs 16`},
		"overflowing shape": {shard(tensor("F64", "[4294967296,4294967296]", 0, 8), 8), `tensor "a" has 8 bytes, its shape needs 18446744073709551615`},
		"no offsets":        {shard(`{"a":{"dtype":"U8","shape":[1]}}`, 1), `header describes tensor "a" without usable data_offsets`},
		"backwards":         {shard(tensor("U8", "[1]", 5, 4), 1), `tensor "a" spans bytes 5 to 4`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			damage, err := CheckSafetensors(bytes.NewReader(test.content), int64(len(test.content)))
			if err != nil || damage != test.damage {
				t.Errorf("got %q, %v; want %q", damage, err, test.damage)
			}
		})
	}
}

func TestParseIndex(t *testing.T) {
	tests := map[string]struct {
		text, damage string
		shards       []string
	}{
		"two shards": {text: `{"metadata":{"total_size":9},"weight_map":{"a":"model-2.safetensors","b":"model-1.safetensors","c":"model-2.safetensors"}}`,
			shards: []string{"s/model-1.safetensors", "s/model-2.safetensors"}},
		"cut":     {text: `{"weight_map":{"a":"mod`, damage: "index of 23 bytes is not usable JSON: unexpected end of JSON input"},
		"no map":  {text: `{}`, damage: "index of 2 bytes has no weight_map"},
		"outside": {text: `{"weight_map":{"a":"../../x"}}`, damage: `index places tensor "a" in "../../x", outside the folder`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			shards, damage := ParseIndex([]byte(test.text), "s")
			if diff := cmp.Diff(test.shards, shards); diff != "" || damage != test.damage {
				t.Errorf("damage %q, shards:\n%s", damage, diff)
			}
		})
	}
}

func FuzzCheckSafetensors(f *testing.F) {
	f.Add(shard(twoTensors, 200))
	f.Add(shard(`{}`, 0))
	f.Add(make([]byte, 8))
	f.Fuzz(func(t *testing.T, content []byte) {
		damage, err := CheckSafetensors(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		if damage == "" && len(content) > 0 {
			// A whole file is damaged by the loss of its last byte.
			cut := content[:len(content)-1]
			if damage, _ := CheckSafetensors(bytes.NewReader(cut), int64(len(cut))); damage == "" {
				t.Error("a cut file seems whole")
			}
		}
	})
}

func FuzzParseIndex(f *testing.F) {
	f.Add(`{"weight_map":{"a":"model-1.safetensors"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		shards, damage := ParseIndex([]byte(text), "snapshots/x")
		for _, shard := range shards {
			if damage != "" || strings.HasPrefix(shard, "..") || strings.HasPrefix(shard, "/") {
				t.Errorf("shard %q, damage %q", shard, damage)
			}
		}
	})
}

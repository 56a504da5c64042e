package pretrained

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

var drawn = flag.String("drawn", "", "a folder that testdata/drawn.py made, for TestDrawn")

// TestDrawn opens models whose configurations are drawn key by key. Each must have the reference library's outputs, or
// an error that names a key of the configuration.
func TestDrawn(t *testing.T) {
	if *drawn == "" {
		t.Skip("needs -drawn")
	}
	folders, err := filepath.Glob(filepath.Join(*drawn, "*", configFile))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no folders, %v", err)
	}
	equal, refused, named := 0, map[string]int{}, 0
	for _, file := range folders {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			keys := must(os.ReadFile(filepath.Join(dir, "keys.txt")))(t)
			m, err := Open(dir, tensor.Float64)
			var u *UnsupportedError
			config, wrong := os.ReadFile(file)
			if wrong == nil && errors.As(err, &u) && strings.Contains(string(config), strconv.Quote(u.Key)) {
				refused[u.Key]++
				return
			}
			if err != nil {
				for _, key := range strings.Fields(string(keys)) {
					if strings.Contains(err.Error(), key+" ") {
						named++
						return
					}
				}
				t.Fatalf("%s: %v", keys, err)
			}
			r := reference{values: readValues(t, filepath.Join(dir, "expected.safetensors")), name: filepath.Base(dir), dir: dir}
			compare(t, string(keys), m.run(t, r.batch(), &layers.Build{}), r.floats("logits"), 1e-5, 0)
			if equal++; t.Failed() {
				equal--
			}
		})
	}
	t.Logf("of %d models, %d equal the reference library's, and %d have another error with a key's name; refused: %v", len(folders), equal, named, refused)
}

package task

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// Folders of encoders with the files of their own tokenizers must give the probabilities and vectors of the reference
// library. ELECTRA's is a discriminator, which opens for its vectors.
func TestEncoderFolders(t *testing.T) {
	content := must.Get(os.ReadFile("testdata/encoders/answers.json"))(t)
	var folders map[string]struct {
		Inputs []string
		Values [][]float64
	}
	must.Do(t, json.Unmarshal(content, &folders))
	for name, want := range folders {
		t.Run(name, func(t *testing.T) {
			m := must.Get(Open(filepath.Join("testdata/encoders", name)))(t)
			compareAnswers(t, m, name == "electra", want.Inputs, want.Values)
		})
	}
}

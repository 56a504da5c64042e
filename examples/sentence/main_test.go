package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/internal/must"
)

// TestScores compares the weights with rows that were computed separately, with plain sums. The notebook prints only
// the scores.
func TestScores(t *testing.T) {
	s := must.Get(notebook.AttendScores(notebook.Printed(printedScores, 6, 6), 1./8))(t)
	w := s.Values("Attention")
	const n = 6
	golden.Check(t, "The", w[:n], "0.18411608 0.16452564 0.15650163 0.15847018 0.18182895 0.15455753", 0)
	golden.Check(t, "cat", w[n:2*n], "0.14763196 0.1919476  0.21480324 0.13868739 0.14579805 0.16113176", 0)

	// The notebook's illustration isn't the softmax of these scores, but in both "cat" attends most to "sat".
	cat := w[n : 2*n]
	if slices.Index(cat, slices.Max(cat)) != slices.Index(illustration, slices.Max(illustration)) {
		t.Errorf("\"cat\" has the attention weights %v, want the largest weight for \"sat\"", cat)
	}
	if math.Abs(cat[2]-illustration[2]) < 0.4 {
		t.Errorf("\"cat\" attends to \"sat\" with %v, want a weight far from the illustration's %v", cat[2], illustration[2])
	}
}

func TestAttend(t *testing.T) {
	s := must.Get(attend(1, strings.Fields("The cat sat on the mat"), 512, 64))(t)
	const n, dim, dK = 6, 512, 64
	for row := range n {
		sum := 0.0
		for _, w := range s.Values("weights")[row*n:][:n] {
			sum += w
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("the weights of token %d sum to %v, not 1", row, sum)
		}
	}
	// "The" and "the" are different words.
	if x := s.Values("X"); slices.Equal(x[:dim], x[4*dim:5*dim]) {
		t.Error("The and the have the same embedding")
	}
	s = must.Get(attend(1, strings.Fields("a rose is a rose too"), 512, 64))(t)
	if out := s.Values("output"); !slices.Equal(out[:dK], out[3*dK:4*dK]) {
		t.Error("without positions, two uses of a word must have the same output")
	}
}

func TestRun(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, nil))
	golden.Contains(t, b.String(), `Input sentence: "The cat sat on the mat"
Tokens: ["The", "cat", "sat", "on", "the", "mat"]
Token positions: [0, 1, 2, 3, 4, 5]
`, `"cat" → [`, "]  (d_model = 512 dimensions)\n", `
X has shape (6, 512)
Q has shape (6, 64)
K has shape (6, 64)
V has shape (6, 64)
W_q, W_k, W_v have shape (512, 64)
Attention_Scores has shape (6, 6)
| Token | Original Embedding | Query Vector | Key Vector | Value Vector |
| "The" | [512 dims] → | [64 dims] | [64 dims] | [64 dims] |
`, "Output has shape (6, 64)\n", "an illustration, not results", printedEmbeddings, `
     The  cat  sat   on  the  mat
The  2.1  1.2  0.8  0.9  2.0  0.7
cat  1.1  3.2  4.1  0.6  1.0  1.8
sat  0.9  4.0  2.8  2.1  0.8  2.2
on   0.7  1.5  2.3  1.9  1.1  3.1
the  1.8  1.0  0.9  1.2  2.1  0.8
mat  0.6  2.1  1.9  2.8  0.7  2.5
`, `
        The     cat     sat      on     the     mat
The  0.2625  0.1500  0.1000  0.1125  0.2500  0.0875
cat  0.1375  0.4000  0.5125  0.0750  0.1250  0.2250
`, `
      The   cat   sat    on   the   mat
The  0.18  0.16  0.16  0.16  0.18  0.15
cat  0.15  0.19  0.21  0.14  0.15  0.16
`, `illustration, which isn't the softmax of its scores:
Attention weights for "cat" looking at all tokens:
"The" → 0.05
"cat" → 0.15
"sat" → 0.65
"on" → 0.03
"the" → 0.07
"mat" → 0.05
Sum = 1.00
cat_output`, `0.05 * V_"The"  `, `0.15 * V_"cat"  `, `0.65 * V_"sat"  `, `0.03 * V_"on"  `, `0.07 * V_"the"  `, `0.05 * V_"mat"  `, "cat_output  ")
}

// TestDecompose checks that the last line of decompose is the word's attention output.
func TestDecompose(t *testing.T) {
	tokens := strings.Fields("the end of the line")
	s := must.Get(attend(3, tokens, 8, 4))(t)
	var b strings.Builder
	decompose(&b, tokens, 2, s.Values("weights")[10:15], s.Get("V"))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	last := strings.Fields(lines[len(lines)-1])
	want := []string{"of_output"}
	for _, v := range s.Values("output")[8:12] {
		want = append(want, fmt.Sprintf("%.4f", v))
	}
	if !slices.Equal(last, want) {
		t.Errorf("want the last line %q, got\n%s", want, &b)
	}
}

func TestOwn(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, []string{"--sentence", " a rose  is a rose ", "--word", "is", "--dim", "8", "--dk", "3"}))
	golden.Contains(t, b.String(), `Tokens: ["a", "rose", "is", "a", "rose"]`, "V has shape (5, 3)\n", "\nis_output (the first 3 of 3 numbers) as a sum:")
	if strings.Contains(b.String(), "notebook") {
		t.Errorf("with a user's own sentence, the program still shows the notebook's scores:\n%s", &b)
	}
	golden.Calls(t, run, []string{"--sentence", "alone", "--dim", "4", "--dk", "2"}, "-dim", "-dk")
	golden.Picture(t, run)
	for _, args := range [][]string{{"--sentence", " "}, {"--sentence", strings.Repeat("a ", 33)}, {"--word", "dog"}, {"a rose"}} {
		var call *example.CallError
		if err := run(io.Discard, args); !errors.As(err, &call) || !strings.Contains(err.Error(), "\n  -sentence SENTENCE\n") {
			t.Errorf("%q: got %v, want a *CallError that lists the flags", args, err)
		}
	}
}

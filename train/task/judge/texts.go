package judge

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
)

// texts judges vectors of texts.
type texts struct{ classes }

func (texts) metrics(c *model.Config) []metrics.Metric {
	nearest := []metrics.Metric{{Name: "batch_accuracy", About: "share of queries whose positive is the nearest text of the batch"}}
	switch distances := (numbers{}).metrics(c); {
	case c.Task.Scored:
		return distances
	case c.Task.Texts == 0:
		return append(nearest, distances...)
	}
	return nearest
}

// A comparison has the texts of judged rows. Rows with an answer of one text and a number have scores.
type comparison struct {
	texts  []string  // all different texts
	rows   [][]int   // numbers of the texts of each row: the query, its positive, and its negatives
	scores []float64 // of each row; nil if the rows have none
}

func newComparison(judged []Judged) *comparison {
	c, numbers := &comparison{}, map[string]int{}
	for _, j := range judged {
		parts := strings.Split(j.References[0], "\t")
		if x, err := text.Number(parts[len(parts)-1]); err == nil && len(parts) == 2 {
			c.scores = append(c.scores, x)
		}
	}
	if len(c.scores) < len(judged) {
		c.scores = nil
	}
	for _, j := range judged {
		texts := append([]string{j.Source}, strings.Split(j.References[0], "\t")...)
		if c.scores != nil {
			texts = texts[:2]
		}
		row := make([]int, len(texts))
		for i, text := range texts {
			n, known := numbers[text]
			if !known {
				n = len(c.texts)
				numbers[text], c.texts = n, append(c.texts, text)
			}
			row[i] = n
		}
		c.rows = append(c.rows, row)
	}
	return c
}

// similarities sets out (len(some), N) to the similarities of some of the N texts with all texts.
type similarities func(some []int, out []float32)

// together compares the texts of each row by the cosines of their vectors, and adds the results to the report. The
// baseline compares them by TF-IDF.
func (texts) together(ctx context.Context, m *model.Model, r *Report) error {
	c := newComparison(r.Judged)
	vectors, answers, _, err := m.Vectors(ctx, c.texts)
	if err != nil {
		return err
	}
	n, dim := len(c.texts), m.Config.Model.Dim
	matrix := make([]float32, n*dim) // (n, Dim); a text without a vector has zeros
	for i, v := range vectors {
		var squares float64
		for _, x := range v {
			squares += float64(x) * float64(x)
		}
		for k, x := range v {
			matrix[i*dim+k] = float32(float64(x) / math.Sqrt(squares))
		}
	}
	var queries []float32
	r.rank(c, func(some []int, out []float32) {
		queries = queries[:0]
		for _, i := range some {
			queries = append(queries, matrix[i*dim:][:dim]...)
		}
		kernel.Gemm(0, false, true, len(some), n, dim, 1, queries, dim, matrix, dim, 0, out, n)
	})
	for i := range r.Judged {
		j, a := &r.Judged[i], answers[c.rows[i][0]]
		a.Text, a.Number = j.Answer.Text, j.Answer.Number
		j.Answer = a
		r.judge(m, j)
	}
	baseline := &Report{Judged: slices.Clone(r.Judged)}
	baseline.rank(c, tfidf(c.texts))
	r.Baseline, r.Chance = texts{}.values(baseline), new(r.kind.chance(r, baseline))
	return nil
}

// rank judges each row. With scores, the answer is the similarity of the two texts. Otherwise the answer is the text
// that is most similar to the query, among all positives and negatives of all rows but the query itself and its other
// positives. A text that is as similar as the right one counts as if it came before it.
func (r *Report) rank(c *comparison, similar similarities) {
	n, candidate, right := len(c.texts), make([]bool, len(c.texts)), map[[2]int]bool{}
	for _, row := range c.rows {
		right[[2]int(row[:2])] = true
		for _, i := range row[1:] {
			candidate[i] = true
		}
	}
	const chunk = 128
	out := make([]float32, min(chunk, len(c.rows))*n)
	for start := 0; start < len(c.rows); start += chunk {
		part := c.rows[start:min(start+chunk, len(c.rows))]
		queries := make([]int, len(part))
		for i, row := range part {
			queries[i] = row[0]
		}
		similar(queries, out[:len(part)*n])
		for i, row := range part {
			j, near := &r.Judged[start+i], out[i*n:][:n]
			own, best := near[row[1]], row[1]
			if c.scores != nil {
				x := float64(own)
				j.Answer.Number, j.Answer.Text = &x, strconv.FormatFloat(x, 'f', 4, 64)
				r.Numbers.Add(x, c.scores[start+i])
				continue
			}
			j.Edits = 0
			for k, s := range near {
				if !candidate[k] || k == row[0] || s < own || right[[2]int{row[0], k}] {
					continue
				}
				if j.Edits++; s > near[best] {
					best = k
				}
			}
			j.Answer.Text, j.Right = c.texts[best], j.Edits == 0
			r.Ranking.Add(1 + j.Edits)
		}
	}
}

// tfidf returns the cosines of the TF-IDF vectors of texts. Case is ignored. A word that d of the N texts have weighs
// 1 + ln((1+N)/(1+d)) for each time that it is in a text.
func tfidf(texts []string) similarities {
	type entry struct {
		number int // of a word or of a text
		weight float32
	}
	numbers, words := map[string]int{}, make([][]entry, len(texts)) // the words of each text
	var found []int                                                 // number of texts with each word
	for i, s := range texts {
		places := map[string]int{} // index in words[i]
		for word := range text.Words(strings.ToLower(s)) {
			if _, known := numbers[word]; !known {
				numbers[word], found = len(found), append(found, 0)
			}
			if _, known := places[word]; !known {
				places[word], words[i] = len(words[i]), append(words[i], entry{number: numbers[word]})
				found[numbers[word]]++
			}
			words[i][places[word]].weight++
		}
	}
	holders := make([][]entry, len(found)) // the texts with each word
	for i, entries := range words {
		squares := 0.0
		for k := range entries {
			e := &entries[k]
			e.weight *= float32(1 + math.Log(float64(1+len(texts))/float64(1+found[e.number])))
			squares += float64(e.weight) * float64(e.weight)
		}
		for k := range entries {
			e := &entries[k]
			e.weight /= float32(math.Sqrt(squares))
			holders[e.number] = append(holders[e.number], entry{i, e.weight})
		}
	}
	return func(some []int, out []float32) {
		clear(out)
		for i, t := range some {
			row := out[i*len(texts):][:len(texts)]
			for _, e := range words[t] {
				for _, h := range holders[e.number] {
					row[h.number] += e.weight * h.weight
				}
			}
		}
	}
}

// judge does nothing, because rank has judged the rows.
func (texts) judge(*model.Model, *Report, *Judged) {}

// values returns the values that are numbers.
func (texts) values(r *Report) map[string]float64 {
	values := map[string]float64{"mrr": r.Ranking.MRR(), "recall@1": r.Ranking.Recall(1), "recall@10": r.Ranking.Recall(10)}
	if r.scored() {
		values = map[string]float64{"spearman": r.Numbers.Spearman(), "pearson": r.Numbers.Pearson()}
	}
	return defined(values)
}

// textScores lists the names of the values of a report, the score first.
func (r *Report) textScores() []string {
	if r.scored() {
		return []string{"spearman", "pearson"}
	}
	return []string{"mrr", "recall@1", "recall@10"}
}

// textValues returns the values of a report in words, or that there are none.
func (r *Report) textValues(values map[string]float64) string {
	var words []string
	for _, name := range r.textScores() {
		if x, ok := values[name]; ok {
			words = append(words, fmt.Sprintf("%s %.4f", name, x))
		}
	}
	if words == nil {
		return "no spearman and no pearson, because all answers or all scores are equal"
	}
	return strings.Join(words, ", ")
}

func (k texts) write(r *Report, w io.Writer) {
	fmt.Fprintf(w, "Of %s: %s%s\n", text.Count(len(r.Judged), "row"), r.textValues(k.values(r)), intervalText(r.Interval(), " of "+r.textScores()[0]))
	fmt.Fprintf(w, "Baseline: TF-IDF of words, %s\n", r.textValues(r.Baseline))
}

func (k texts) scores(r *Report, s *Scores) {
	s.Score, s.Total = r.textScores()[0], len(r.Judged)
	values := k.values(r)
	for name, field := range map[string]**float64{"mrr": &s.MRR, "recall@1": &s.Recall1, "recall@10": &s.Recall10, "spearman": &s.Spearman, "pearson": &s.Pearson} {
		if x, ok := values[name]; ok {
			*field = &x
		}
	}
	s.Value = cmp.Or(s.MRR, s.Spearman)
}

// details returns the rank of the right text.
func (texts) details(j Judged) (names, values []string) {
	rank := ""
	if j.Answer.Number == nil {
		rank = strconv.Itoa(1 + j.Edits)
	}
	return []string{"rank"}, []string{rank}
}

package score_test

import (
	"fmt"
	"strings"

	"github.com/heed-go/heed/train/score"
)

// The answers and references are phonemes. The first word can be pronounced in two ways.
func ExampleErrorRate() {
	var errors score.ErrorRate[string]
	errors.Add(strings.Fields("T AH M EY T OW"), strings.Fields("T AH M AA T OW"), strings.Fields("T AH M EY T OW"))
	errors.Add(strings.Fields("K AE T S"), strings.Fields("K AE T"))
	fmt.Printf("%d edits of %d phonemes, %.1f %%\n", errors.Edits, errors.Units, 100*errors.Value())
	// Output:
	// 1 edits of 9 phonemes, 11.1 %
}

func ExampleCHRF() {
	var chrf score.CHRF
	chrf.Add("The dog bit the man.", "The dog bit the man.", "The dog had bit the man.")
	chrf.Add("It wasn't surprising.", "It was not unexpected.", "No one was surprised.")
	chrf.Add("The man had just bitten him.", "The man bit him first.", "The man had bitten the dog.")
	fmt.Printf("chrF2 = %.2f\n", chrf.Value())
	// Output:
	// chrF2 = 59.73
}

func ExampleBLEU() {
	var bleu score.BLEU
	bleu.Add("The dog bit the man.", "The dog bit the man.", "The dog had bit the man.")
	bleu.Add("It wasn't surprising.", "It was not unexpected.", "No one was surprised.")
	bleu.Add("The man had just bitten him.", "The man bit him first.", "The man had bitten the dog.")
	fmt.Printf("BLEU = %.2f\n", bleu.Value())
	// Output:
	// BLEU = 48.53
}

func ExampleConfusion() {
	var c score.Confusion
	for _, row := range [][2]string{{"good", "good"}, {"good", "good"}, {"good", "bad"}, {"bad", "bad"}, {"bad", "fair"}} {
		c.Add(row[0], row[1])
	}
	for _, s := range append(c.Classes(), c.Macro()) {
		fmt.Printf("%-5s precision %.2f, recall %.2f, F1 %.2f\n", s.Class, s.Precision, s.Recall, s.F1)
	}
	fmt.Printf("accuracy %.2f; good for bad: %d\n", c.Accuracy(), c.Count("good", "bad"))
	// Output:
	// bad   precision 0.50, recall 0.50, F1 0.50
	// fair  precision 0.00, recall 0.00, F1 0.00
	// good  precision 0.67, recall 1.00, F1 0.80
	//       precision 0.39, recall 0.50, F1 0.43
	// accuracy 0.60; good for bad: 1
}

// The first answered entity begins one token too early.
func ExampleEntities() {
	var e score.Entities
	e.Add(strings.Fields("O O B-MISC I-MISC I-MISC I-MISC O"), strings.Fields("O O O B-MISC I-MISC I-MISC O"))
	e.Add(strings.Fields("B-PER I-PER O"), strings.Fields("B-PER I-PER O"))
	for _, s := range append(e.Types(), e.Total()) {
		fmt.Printf("%-4s precision %.2f, recall %.2f, F1 %.2f, %d entities\n", s.Class, s.Precision, s.Recall, s.F1, s.Rows)
	}
	// Output:
	// MISC precision 0.00, recall 0.00, F1 0.00, 1 entities
	// PER  precision 1.00, recall 1.00, F1 1.00, 1 entities
	//      precision 0.50, recall 0.50, F1 0.50, 2 entities
}

func ExampleRegression() {
	var r score.Regression
	for _, row := range [][2]float64{{2.5, 3}, {0, -0.5}, {2, 2}, {8, 7}} {
		r.Add(row[0], row[1])
	}
	fmt.Printf("mean absolute error %.2f, R² %.3f, Pearson %.3f, Spearman %.1f\n", r.MeanAbsoluteError(), r.RSquared(), r.Pearson(), r.Spearman())
	// Output:
	// mean absolute error 0.50, R² 0.949, Pearson 0.985, Spearman 1.0
}

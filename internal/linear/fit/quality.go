package fit

import "github.com/heed-go/heed/internal/metrics"

// qualityOf returns the accuracy plus the macro F1 of the rows that have scores. Accuracy alone hardly depends on rare
// classes, and macro F1 alone depends on few rows. Classes that are neither labels nor answers don't count.
func qualityOf(scores []float32, classes int, labels [][]int) float64 {
	labels = labels[:len(scores)/classes]
	right := make([]float64, classes)
	total := make([]float64, classes) // labels and answers
	sum := 0.0
	for i, one := range labels {
		row, label := scores[i*classes:(i+1)*classes], one[0]
		best := 0
		for c, score := range row {
			if score > row[best] {
				best = c
			}
		}
		total[label]++
		total[best]++
		if best == label {
			right[label]++
			sum++
		}
	}
	f1, counted := 0.0, 0.0
	for c, n := range total {
		if n > 0 {
			f1 += 2 * right[c] / n
			counted++
		}
	}
	return sum/float64(len(labels)) + f1/counted
}

// averagePrecision returns the average precision of all labels together, of the rows that have scores (rows, classes),
// or 0 without labels.
func averagePrecision(scores []float32, classes int, labels [][]int) float64 {
	right, count := make([]bool, len(scores)), 0
	for row, some := range labels[:len(scores)/classes] {
		for _, label := range some {
			right[row*classes+label] = true
			count++
		}
	}
	if count == 0 {
		return 0
	}
	return metrics.AveragePrecision(scores, right)
}

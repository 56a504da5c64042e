package task

import "math"

// bestScale returns the factor for the scores (rows, classes) with which their softmax has the least cross-entropy,
// from leastScale to mostScale.
func bestScale(scores []float32, labels []int, classes int) float32 {
	// The cross-entropy is a convex function of the factor, so halving the range by the sign of its slope finds the
	// minimum.
	low, high := leastScale, mostScale
	for range 30 {
		middle := math.Sqrt(low * high)
		if slope(scores, labels, classes, middle) > 0 {
			high = middle
		} else {
			low = middle
		}
	}
	return float32(math.Sqrt(low * high))
}

const leastScale, mostScale = 0.01, 100.0

// slope returns the derivative of the mean cross-entropy with respect to the factor for the scores. Targets are
// smoothed by one row's share, so that the factor stays finite if all rows have their highest score at their label
// (Platt, 1999).
func slope(scores []float32, labels []int, classes int, scale float64) float64 {
	total, smoothing := 0.0, 1/float64(len(labels)+1)
	for i, label := range labels {
		row := scores[i*classes:][:classes]
		largest, average := math.Inf(-1), 0.0
		for _, s := range row {
			largest, average = max(largest, float64(s)), average+float64(s)/float64(classes)
		}
		sum, mean := 0.0, 0.0
		for _, s := range row {
			e := math.Exp(scale * (float64(s) - largest))
			sum, mean = sum+e, mean+e*float64(s)
		}
		total += mean/sum - (1-smoothing)*float64(row[label]) - smoothing*average
	}
	return total / float64(max(1, len(labels)))
}

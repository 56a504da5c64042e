package task

import (
	"cmp"
	"slices"
)

// fineWindows is the usual number of windows of a text, or of conversations, in a batch of a published model.
const fineWindows = 8

// choosePack sets Pack if it is empty and several documents fill less than half a row on average. The argument symbols
// is the number of all their characters or tokens. choosePack reports whether it sets Pack.
func (c *Config) choosePack(symbols, documents int) bool {
	chosen := c.Data.Pack == "" && documents > 1 && 2*symbols < c.Task.MaxLen*documents
	if chosen {
		c.Data.Pack = "yes"
	}
	return chosen
}

// pack divides sequences among rows of the given width, which no sequence exceeds. It takes the longest sequences
// first, and puts each in the row with the least room that suffices (best-fit decreasing). It returns the indices of
// the sequences in each row.
func pack(lengths []int, width int) (rows [][]int) {
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(lengths[j], lengths[i]) })
	open := make([][]int, width+1) // rows by their room
	for _, i := range order {
		room := lengths[i]
		for room < width && len(open[room]) == 0 {
			room++
		}
		row := len(rows)
		if last := len(open[room]) - 1; last >= 0 {
			row, open[room] = open[room][last], open[room][:last]
			rows[row] = append(rows[row], i)
		} else {
			room, rows = width, append(rows, []int{i})
		}
		open[room-lengths[i]] = append(open[room-lengths[i]], row)
	}
	return rows
}

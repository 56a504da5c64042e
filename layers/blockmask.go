package layers

import (
	"fmt"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/memory"
)

// A BlockMask says which keys each query may attend to, from a function of their positions (as FlexAttention does; Dong
// et al., 2024). It keeps the function's results in blocks of 64 queries and 64 keys: a full or an empty block takes 4
// bytes, and any other block 512 bytes more. The fused op skips empty blocks, so its time follows the other ones, and
// it gives the same results as with an Allow. Any number of layers, graphs and runs can share a BlockMask. It doesn't
// change. Make one with NewBlockMask.
type BlockMask kernel.Blocks

// NewBlockMask makes a BlockMask for T positions of queries and S keys. It calls the function sees once for each pair:
// true lets the query attend to the key. Sequences may be shorter than T and S. NewBlockMask returns an error if T or S
// is below 1, or if the machine has too little memory for T·S/1024 bytes.
func NewBlockMask(T, S int, sees func(query, key int) bool) (*BlockMask, error) {
	if err := positive("block mask", size{"T", T}, size{"S", S}); err != nil {
		return nil, err
	}
	if err := memory.Check(memory.Product(T/64+1, S/64+1, 4)); err != nil {
		return nil, fmt.Errorf("block mask: %d queries and %d keys: %w", T, S, err)
	}
	return (*BlockMask)(kernel.NewBlocks(T, S, sees)), nil
}

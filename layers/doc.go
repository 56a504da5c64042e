// Package layers gives Gorgonia programs attention and transformer layers.
//
// # Parameters live outside graphs
//
// A [Params] makes, names and initialises the parameters of a model. Each layer takes its parameters from one, and has
// a method Forward that adds nodes to its input's graph:
//
//	params, err := layers.NewParams(tensor.Float32, seed)
//	attention, err := layers.NewMultiHeadAttention(params.Scope("attention"), 64, layers.AttentionConfig{Heads: 4})
//	…
//	b := &layers.Build{Mode: layers.Training}
//	y, err := attention.Forward(b, x, x, x, layers.Mask{Causal: true})
//	…
//	grads, err := gorgonia.Grad(cost, b.Learnables()...)
//
// The example of [MultiHeadAttention] is a complete program.
//
// Forward binds parameters into the graph as input nodes that use the parameters' own memory. Any number of graphs,
// with any batch sizes, share one model: train in one and predict in another, without copying.
//
// # A Build for each graph
//
// A [Build] holds the settings of one graph: whether it is for training, the seed of its dropout, whether to keep
// attention weights. After Forward, it lists the graph's learnable nodes. A graph for evaluation has no dropout nodes.
//
// # Configuration
//
// Configurations nest like models: a [ModelConfig] holds a [PositionsConfig] and a [BlockConfig], which holds an
// [AttentionConfig], a [FeedForwardConfig] and a [NormConfig]. Widths are arguments of the constructors, which pass
// them on. An [Init] applies to every weight below it that has no Init of its own. Configurations can be written to
// JSON and read back, unless they contain an Init with a Func or a position scheme of your own. Constructors return an
// error if options can't be combined, or if a number is NaN, infinite or above 1e15 in size.
//
// # Shapes and names
//
// B is the batch size, T the number of queries, S the number of keys, D the width of the model, H the number of query
// heads, G the number of key and value heads, K the width of a head (D/H by default) and V the size of the vocabulary.
// Layers over sequences take (B, T, D), or (T, D) for a single sequence. Token ids, targets and lengths are nodes of
// dtype [gorgonia.org/tensor.Int]. Weights have shape (out, in), as in PyTorch. Their names give their place in the
// model: blocks.0.attention.query.weight.
//
// # Contents
//
// The files, from parts to whole models:
//
//	linear.go, embedding.go       Linear; Embedding
//	positions.go                  Positions, the interface of position schemes; None
//	learned.go, sinusoidal.go     schemes that add to embeddings
//	rotary.go, rotary_scaling.go  a scheme that rotates queries and keys
//	alibi.go, relative.go         schemes that add to scores
//	norm.go, dropout.go           LayerNorm, RMSNorm; Dropout
//	activation.go                 ReLU, GELU, SiLU
//	feedforward.go                FeedForward, gated or not
//	attention.go, mask.go         ScaledDotProduct, its options and its Mask
//	multihead.go                  MultiHeadAttention: attention with learned projections
//	additive.go                   AdditiveAttention: keys scored by a small network
//	block.go                      EncoderBlock, DecoderBlock
//	model.go                      ModelConfig; Trunk, the parts that an encoder and a decoder share
//	encoder.go, decoder.go        Encoder; Decoder
//	encoder_decoder.go            EncoderDecoder
//	classifier.go                 SequenceClassifier
//	cache.go                      Cache: keys and values of earlier tokens, for decoding (see package decode)
//	multihead_cached.go           attention to the keys and values in a Cache
//	loss.go                       CrossEntropy, BinaryCrossEntropy; squared, absolute and Huber error
//	param.go, init.go, build.go   Params, initial values, Build
//	function.go                   Function: a graph to evaluate, with its machine
//	graph.go                      CheckGraph, for graphs that you run yourself
//	weights.go, pytorch.go        saving and loading safetensors files, ours and PyTorch's
//
// # Attention
//
// [ScaledDotProduct] is one fused, tiled op that stores nothing of size T×S. [ScaledDotProductStages] builds the same
// function from separate ops and returns every stage as a node: scores, weights, output. Each option means the same in
// both, and all options combine: a scale, a softcap, key and value heads that several query heads share, past keys and
// values, dropout of the weights, and the [Mask].
//
// In a Mask, true always means attend. Its parts are a causal limit, a window, key lengths, a boolean mask, a bias to
// add and slopes by distance; all can be used at once. Masked keys reach neither an output nor a gradient, even if they
// hold NaN. The output for a query with no key to attend to is zero.
//
// # Machines
//
// A [Function] is a graph for evaluation together with its machine: it takes values and returns copies, and any number
// of goroutines may call it. For prediction you need nothing else.
//
// Otherwise use gorgonia.NewTapeMachine. Keep only one live machine per graph, because operations reuse their memory
// between runs. Graphs that share parameters may run at the same time as long as none of them trains. A run may
// overwrite the Value of an intermediate node: to see it, create a gorgonia.Read of the node before the machine, and
// copy the value if you keep it.
//
// Goroutines may build, differentiate and run models at the same time, each in its own graph. One of Gorgonia's own
// operations is an exception: gorgonia.Rectify counts its calls in a variable that all graphs share. Use [ReLU]
// instead.
package layers

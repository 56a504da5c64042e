// Package pretrained opens published models: folders with config.json and safetensors files, as the library
// transformers writes them and model hubs offer them.
//
// Open makes a model of package layers with the folder's weights. The model is like one of your own: its parameters can
// be trained, its graph has gradients, and attention weights can be captured.
//
//	m, err := pretrained.Open("SmolLM2-135M", tensor.Float32)
//	…
//	session, err := decode.New(m.Decoder, decode.Config{Capacity: 100})
//
// The package works with token ids. Package data/tokenizer opens the folder's tokenizer.
//
// # Adapters
//
// Config.OpenAdapter opens a low-rank adapter (LoRA) that the library peft saved, as a layers.Adapter for the model's
// parameters, and Config.SaveAdapter saves one for peft. An adapter of your own that shall be saved needs the Joint of
// the Config:
//
//	a, err := layers.NewAdapter(m.Params, layers.LowRank{Rank: 8, Alpha: 16, Joint: m.Joint()}, seed)
//
// # Architectures
//
// The key model_type in config.json names the architecture. An architecture is a file of this package, such as
// llama.go, and a line in the table architectures. The file says how the keys of config.json map to a
// layers.ModelConfig, which values missing keys have, and how the names of tensors map to parameters. The same lists
// serve Open and Save.
package pretrained

// Package model opens models and answers with them. It needs neither the trainer nor the data that a model learned
// from: package task trains models.
//
// A folder may have a run of heed train or of task.Task.Train, a published model of the libraries transformers or
// sentence-transformers, or an adapter of the library peft. [Open] finds out which, and returns a [Model]. What the
// model can do depends on the kind of its task: see [Kind].
//
//   - Predict and PredictAll give labels, tags, numbers, sequences, or masked symbols. Explain and
//     Attention show what an answer depends on.
//   - Generate continues a text or a conversation. ScoreText says how well a model predicts a text.
//   - Embed makes vectors of texts.
//   - Export writes the model as a published one.
//
// Errors tell whose mistake it was: an [InputError] is about an input, and a [ConfigError] about an option or a
// setting. Other errors are about the folder.
//
// For package task, the model also has its layers and its coder ([Model.Network], [Model.Coder]), and [New] makes one
// with new weights. The files of this package are in layers: [Config] and its [Description] know no Model; a file for
// each head makes its layers; what answers is above the heads, and what opens folders is above all.
package model

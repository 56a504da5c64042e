package data

func init() {
	kinds = map[Kind]kind{
		KindTagging:        {coder: newTaggingCoder, target: true, classes: true},
		KindClassification: {coder: newClassificationCoder, classes: true, pairs: true, cuts: true},
		KindMultiLabel:     {coder: newMultiLabelCoder, classes: true, separator: true, pairs: true, cuts: true},
		KindSeq2Seq:        {coder: newSeq2SeqCoder, maxAnswer: true, target: true},
		KindText:           {coder: newTextCoder},
		KindMaskedText:     {coder: newMaskedText},
		KindRegression:     {coder: newRegressionCoder, number: true, pairs: true, cuts: true},
		KindEmbed:          {coder: newEmbeddingCoder, texts: true, cuts: true},
		KindQA:             {coder: newAnswerCoder, pairs: true, parts: true},
	}
}

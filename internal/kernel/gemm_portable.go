package kernel

// gemmPortable returns the tile function in Go, and the sizes that suit it.
func gemmPortable[F Float]() gemmTiles[F] {
	return gemmTiles[F]{rows: 2, cols: 4, lanes: 4, depth: 256, band: 128, slab: 256, tile: gemmTilePortable[F]}
}

// gemmTilePortable computes tiles of up to 2×4.
func gemmTilePortable[F Float](t *gemmTile[F]) {
	for {
		if t.rows == 2 {
			gemmTile2(t)
		} else {
			gemmTile1(t)
		}
		t.tiles--
		if t.tiles == 0 {
			return
		}
		t.a, t.c = t.a[t.rows*t.rsA:], t.c[t.rows*t.ldc:]
	}
}

func gemmTile2[F Float](t *gemmTile[F]) {
	var c00, c01, c02, c03, c10, c11, c12, c13 F
	a, b, cs, rs, rsB := t.a, t.b, t.csA, t.rsA, t.rsB
	ai, bi := 0, 0
	for range t.k {
		row := b[bi : bi+4 : bi+4]
		x, y := a[ai], a[ai+rs]
		c00 += x * row[0]
		c01 += x * row[1]
		c02 += x * row[2]
		c03 += x * row[3]
		c10 += y * row[0]
		c11 += y * row[1]
		c12 += y * row[2]
		c13 += y * row[3]
		ai += cs
		bi += rsB
	}
	gemmStore(t, 0, c00, c01, c02, c03)
	gemmStore(t, 1, c10, c11, c12, c13)
}

func gemmTile1[F Float](t *gemmTile[F]) {
	var c0, c1, c2, c3 F
	a, b, cs, rsB := t.a, t.b, t.csA, t.rsB
	ai, bi := 0, 0
	for range t.k {
		row := b[bi : bi+4 : bi+4]
		x := a[ai]
		c0 += x * row[0]
		c1 += x * row[1]
		c2 += x * row[2]
		c3 += x * row[3]
		ai += cs
		bi += rsB
	}
	gemmStore(t, 0, c0, c1, c2, c3)
}

// gemmStore updates a row of the tile of C.
func gemmStore[F Float](t *gemmTile[F], i int, x0, x1, x2, x3 F) {
	c := t.c[i*t.ldc : i*t.ldc+t.cols]
	x := [4]F{x0, x1, x2, x3}
	for j := range c {
		if t.keep == 0 {
			c[j] = t.alpha * x[j&3]
		} else {
			c[j] = t.beta*c[j] + t.alpha*x[j&3]
		}
	}
}

package report

// sums holds sums over steps or checks: their number n, their losses, and the number and seconds of those whose time
// was measured.
type sums struct{ n, loss, timed, seconds float64 }

// add multiplies s by fade and adds o.
func (s *sums) add(o sums, fade float64) {
	s.n = s.n*fade + o.n
	s.loss = s.loss*fade + o.loss
	s.timed = s.timed*fade + o.timed
	s.seconds = s.seconds*fade + o.seconds
}

// mean returns the mean loss.
func (s sums) mean() float64 { return s.loss / s.n }

// rate returns the number of timed steps or checks per second, or 0 if none was timed.
func (s sums) rate() float64 {
	if s.seconds <= 0 {
		return 0
	}
	return s.timed / s.seconds
}

// maxPoints is the maximum number of points in a curve, an even number.
const maxPoints = 1024

// A curve holds the losses of steps. All points except the last cover the same number of steps. When there would be too
// many points, this number doubles.
type curve struct {
	each   int // steps per point; the last point may have fewer
	points []point
}

// A point covers consecutive steps. The number of its last step is x, counted from 1.
type point struct {
	x int
	sums
}

// add adds step number x.
func (c *curve) add(x int, step sums) {
	c.each = max(c.each, 1)
	if last := len(c.points) - 1; last < 0 || int(c.points[last].n) == c.each {
		if len(c.points) == maxPoints {
			for i := range maxPoints / 2 {
				p := c.points[2*i+1]
				p.add(c.points[2*i].sums, 1)
				c.points[i] = p
			}
			c.points = c.points[:maxPoints/2]
			c.each *= 2
		}
		c.points = append(c.points, point{})
	}
	p := &c.points[len(c.points)-1]
	p.x = x
	p.add(step, 1)
}

// whole returns the points, without the last one if it is incomplete. A single point is always returned.
func (c *curve) whole() []point {
	if last := len(c.points) - 1; last > 0 && int(c.points[last].n) < c.each {
		return c.points[:last]
	}
	return c.points
}

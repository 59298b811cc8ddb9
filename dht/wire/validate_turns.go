package wire

import "fmt"

// checkMs checks durations of host leases.
func checkMs(what string, ms ...uint64) error {
	for _, n := range ms {
		if n > MaxTurnMs {
			return over(what, int(min(n, 1<<30)), MaxTurnMs)
		}
	}
	return nil
}

// validate checks the requests for host leases. A wanted lease has its number in Turn, and one that
// is given back in Back.
func (m *Turns) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Asks) > MaxTurns {
		return over("addresses asked for", len(m.Asks), MaxTurns)
	}
	for _, a := range m.Asks {
		if a.GetAddress() == "" {
			return fmt.Errorf("a turn of no address: %w", ErrMalformed)
		}
		if err := checkText("address of a turn", a.Address, MaxAddress); err != nil {
			return err
		}
		// 0 means that there is no number.
		if a.Want && a.Turn == 0 || !a.Want && a.Back == 0 {
			return fmt.Errorf("a turn without a number: %w", ErrMalformed)
		}
		if err := checkMs("time of a turn in ms", a.GapMs, a.PaceMs); err != nil {
			return err
		}
	}
	return nil
}

// validate checks the answers. They belong to the requests by index.
func (m *TurnsAnswer) validate() error {
	if m == nil {
		return ErrNoBody
	}
	if len(m.Answers) > MaxTurns {
		return over("turns", len(m.Answers), MaxTurns)
	}
	for _, a := range m.Answers {
		if _, ok := TurnAnswer_State_name[int32(a.GetState())]; !ok || a.GetState() == TurnAnswer_STATE_UNSPECIFIED {
			return fmt.Errorf("state %d of a turn: %w", a.GetState(), ErrMalformed)
		}
		if err := checkMs("time of a turn in ms", a.WaitMs, a.TermMs, a.GapMs); err != nil {
			return err
		}
		if err := checkText("owner", a.Owner, MaxPeerID); err != nil {
			return err
		}
		if err := checkText("reason", a.Reason, MaxText); err != nil {
			return err
		}
	}
	return nil
}

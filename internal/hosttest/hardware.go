package hosttest

import "fmt"

// mac is the address of one of the host's network cards, as its maker gave it. The lock is held.
func (h *Host) mac(card int) string {
	return fmt.Sprintf("4c:bb:47:%02x:%02x:%02x", h.exchanged, card, 11+h.index)
}

// ExchangeMachine puts another machine in the host's place: all is as it was but the network cards.
func (h *Host) ExchangeMachine() { h.change(func() { h.exchanged++ }) }

// RestoreMachine undoes all of [Host.ExchangeMachine].
func (h *Host) RestoreMachine() { h.change(func() { h.exchanged = 0 }) }

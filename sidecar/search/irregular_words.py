"""English words whose forms no stemmer joins: wolf and wolves, steal and stole.

Games are full of them (elves, dwarves, thieves, knives; fought, slew, stole), so a stemmer alone would let a player
ask for wolves and miss the wolf. A form is listed when it is not also another common word (lives, saw, left, found).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_NOUNS = """
    calf:calves child:children dwarf:dwarves elf:elves foot:feet goose:geese half:halves hoof:hooves knife:knives
    leaf:leaves loaf:loaves louse:lice man:men mouse:mice ox:oxen scarf:scarves self:selves shelf:shelves
    staff:staves thief:thieves tooth:teeth wife:wives wolf:wolves woman:women
"""
_VERBS = """
    arise:arose,arisen awake:awoke,awoken bear:borne beat:beaten become:became begin:began,begun bend:bent bite:bitten
    bleed:bled blow:blew,blown break:broke,broken breed:bred bring:brought build:built burn:burnt buy:bought
    catch:caught choose:chose,chosen cling:clung come:came creep:crept deal:dealt dig:dug draw:drew,drawn
    dream:dreamt drink:drank,drunk drive:drove,driven dwell:dwelt eat:ate,eaten fall:fell,fallen feed:fed feel:felt
    fight:fought flee:fled fling:flung fly:flew,flown forbid:forbade,forbidden forget:forgot,forgotten
    forgive:forgave,forgiven freeze:froze,frozen get:got,gotten give:gave,given go:went,gone grow:grew,grown
    hang:hung hear:heard hide:hid,hidden hold:held keep:kept kneel:knelt know:knew,known lead:led leap:leapt
    learn:learnt lend:lent lose:lost make:made mean:meant meet:met pay:paid ride:rode,ridden ring:rang,rung
    rise:risen run:ran say:said see:seen seek:sought sell:sold send:sent shake:shook,shaken shoot:shot
    shrink:shrank,shrunk sing:sang,sung sink:sank,sunk sit:sat slay:slew,slain sleep:slept slide:slid smell:smelt
    speak:spoke,spoken spend:spent spin:spun spring:sprang,sprung stand:stood steal:stole,stolen stick:stuck
    sting:stung strike:struck,stricken swear:swore,sworn sweep:swept swim:swam,swum swing:swung take:took,taken
    teach:taught tear:tore,torn tell:told think:thought throw:threw,thrown understand:understood wake:woke,woken
    wear:wore,worn weave:wove,woven weep:wept win:won write:wrote,written
"""


def _forms(table: str) -> dict[str, str]:
    entries = (entry.split(":") for entry in table.split())
    return {form: base for base, forms in entries for form in forms.split(",")}


#: Each irregular form to its base.
IRREGULAR: Mapping[str, str] = MappingProxyType(_forms(_NOUNS) | _forms(_VERBS))

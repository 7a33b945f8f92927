"""Forty things that a player may ask an NPC, the memory that answers each, and four hundred memories that do not.

The distractors are about the same people and places, so that shared words alone find nothing.
"""

from __future__ import annotations

import itertools

PAIRS = (
    ("Who broke the bridge?", "Two trolls smashed the wooden crossing over the Silverrun at the last full moon."),
    ("Where did you hide the treasure?", "I buried the chest of coins under the third oak behind the mill."),
    ("Why do you hate the smith?", "Borin the blacksmith cheated my father out of his farm."),
    ("What is your daughter's name?", "My little girl is called Elsbeth and she turned six this spring."),
    ("Do you remember what I gave you?", "The traveller presented me with a carved wooden flute as a gift."),
    ("Is there a way into the castle without being seen?", "The old drain below the north wall leads into the keep."),
    ("What are you afraid of?", "Ever since the flood I cannot go near deep water without trembling."),
    ("Who rules this land?", "Queen Ysolde has held the throne since her brother fell at Harrow Field."),
    ("How can I cure the poison?", "Moonpetal boiled in goat's milk draws the venom out within a day."),
    ("Did I keep my promise?", "The hero swore to bring back the stolen bell, and did so before harvest."),
    ("What do the goblins want?", "The green raiders only ask for salt and iron nails in return for peace."),
    ("When does the shop open?", "The general store lifts its shutters at dawn, except on feast days."),
    ("Who was killed in the tavern?", "A card player named Rusk was stabbed at the Drunken Heron."),
    ("Can you teach me magic?", "I once studied the weaving of fire at the academy, before I was expelled."),
    ("What happened to your arm?", "A wolf tore off my left hand during the winter hunt."),
    ("Who is in love with the baker?", "Young Tomas writes poems to the woman who makes our bread."),
    ("Where can I find dragon scales?", "The cave above Ember Pass is littered with plates shed by the great wyrm."),
    ("Why are the gates closed?", "The captain ordered the city sealed because of the plague."),
    ("What do you think of me?", "I trust the adventurer with my life after the fight at the ford."),
    ("How much does a horse cost?", "Steeds at Marrow's stable go for sixty silver, saddle included."),
    ("Which song makes the ghost rest?", "The spirit in the crypt falls silent when it hears the Lament of Anwen."),
    ("Who is the spy?", "The cook has been carrying letters to the enemy in loaves of bread."),
    ("What did the stranger look like?", "He wore a grey hood and had a scar across his nose."),
    ("How do I get to the lighthouse?", "Follow the cliffs east from the harbour until you see the white tower."),
    ("Was the harvest good this year?", "The crops rotted in the fields, and we shall be hungry by spring."),
    ("Who taught you to fight?", "An old mercenary from the south showed me how to use a blade."),
    ("Why did you leave the army?", "I deserted when they told us to burn a village full of children."),
    ("Is the well water safe?", "Since the dead sheep was found in it, nobody drinks from the village pump."),
    ("What do you want for your birthday?", "I wish somebody would bring me a telescope to watch the stars."),
    ("Where does the wizard live?", "The enchanter's crooked house stands on stilts in the Mirefen."),
    ("Who owes you money?", "Garrick the ferryman has not paid back the twelve crowns he borrowed."),
    (
        "What is the password of the guild?",
        "Whisper 'nightshade' three times at the cellar door and the thieves let you in.",
    ),
    ("How did your husband die?", "My spouse drowned when his fishing boat sank in the storm."),
    ("Are there any bandits on the road?", "Robbers ambushed a wagon near the crossroads yesterday."),
    ("What weapon hurts werewolves?", "Only silver bites the skin of those who change with the moon."),
    ("Who built the temple?", "Dwarven masons raised the shrine of the sun four centuries ago."),
    ("What did the oracle tell you?", "The seer foretold that a child without a shadow would end the war."),
    ("Can I sleep here tonight?", "There is a spare bed in the attic for guests, two coppers a night."),
    ("Why is the mayor so rich?", "The town's headman takes a share of every smuggled barrel."),
    ("What animal do you keep as a pet?", "A three-legged fox follows me everywhere and sleeps at my feet."),
)

_PEOPLE = (
    "Borin",
    "Elsbeth",
    "Queen Ysolde",
    "Tomas",
    "Garrick",
    "the captain",
    "the cook",
    "Marrow",
    "Rusk's widow",
    "the miller",
)
_DEEDS = (
    "bought a new hat", "complained about the noise", "swept the steps", "told a long joke about a bishop",
    "lost a game of dice", "mended a torn sleeve", "sang off key", "counted the candles", "fed the pigeons",
    "argued about the price of onions",
)  # fmt: skip
_PLACES = ("at the market", "by the mill", "near the harbour", "outside the temple")


def distractors() -> list[str]:
    """Four hundred memories, each one different."""
    return [
        f"{who[0].upper()}{who[1:]} {deed} {place}." for who, deed, place in itertools.product(_PEOPLE, _DEEDS, _PLACES)
    ]

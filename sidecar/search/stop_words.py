"""Words that hold sentences together and say nothing on their own, by language.

The lists are short and careful: a word that is also a name or a thing (will, may, can, mine) is not in them, because
an NPC may be called so. Common words that are not listed cost little: BM25 weighs them next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_LISTS = {
    "english": """
        a about after again all also am an and any are as at be because been before being between both but by could
        d did do does doing during each few for from further had has have having he her here hers herself him himself
        his how i if in into is it its itself just ll me more most my myself no nor not now of off on once only or
        other our ours ourselves out over own re s same she should so some such t than that the their theirs them
        themselves then there these they this those through to too under until up ve very was we were what when where
        which while who whom whose why with would you your yours yourself yourselves
    """,
    "french": """
        a au aux avec c ce ces cet cette d dans de des du elle elles en est et il ils j je l la le les leur leurs lui
        m ma mais me mes moi n ne nos notre nous on ou où par pas pour qu que qui s sa se ses son sont sur t ta te tes
        toi ton tu un une vos votre vous y à été être
    """,
    "german": """
        aber als am an auch auf aus bei bin bis bist da das dass dein deine dem den der des dich die dies diese dieser
        dir du ein eine einem einen einer eines er es für habe haben hat hatte ich ihm ihn ihr ihre im in ist ja kein
        keine man mein meine mich mir mit nach nicht noch nur ob oder schon sein seine sich sie sind so über um und uns
        unter vom von vor war waren was wenn wer werden wie wir wird wo wurde wurden zu zum zur
    """,
    "greek": """
        α από αυτά αυτή αυτό για δεν εγώ είναι εκ εσύ έχει η ήταν θα και κι μας με μετά μη μια μου να ο οι όπως ότι
        που πώς σας σε στη στην στις στο στον στους στα στους τα τη την της τι τις το τον του τους των ως
    """,
    "hindi": """
        और का की के को में से है हैं था थी थे ने पर यह वह ये वे एक कि जो तो ही भी हो होता होती होते हुआ हुई हुए कर करने किया
        गया गई गए लिए साथ इस उस इन उन अपने अपनी नहीं या द्वारा
    """,
    "italian": """
        a ad agli ai al alla alle anche c che chi ci come con d da dal dalla dei del della delle di e ed era gli ha
        hanno ho i il in io l la le lei lo loro lui ma mi mio mia ne nei nel nella noi non o per più quale quando
        quello questa questo se sei si sono su sua sul sulla suo ti tra tu un una uno vi voi è
    """,
    "portuguese": """
        a ao aos as com como da das de do dos e ela elas ele eles em era essa esse esta este eu foi há isso já lhe mais
        mas me meu minha muito na nas no nos nós não o os ou para pela pelo por qual quando que quem se sem ser seu
        sua são só te tem também tu um uma você à é
    """,
    "romanian": """
        a ai al ale am ar au ca care ce cel cea cele cei cu da de din după e ea ei el ele era este eu fi fost i iar în
        îl îi la le lui mai mă mi ne nu o pe pentru pe prin sa să se și si sunt ta te tu un una unei unui va
    """,
    "russian": """
        а без бы был была были было быть в вам вас во вот все всё вы где да для до его ее её если есть еще ещё же за
        и из или им их к как когда кто ли меня мне мы на над не него нее неё нет ни них но о об он она они оно от по
        под при с со так там то тоже только тот ты у уже чем что чтобы эта эти это этот я
    """,
    "spanish": """
        a al algo ante antes como con cual cuando cuál cuándo cómo de del desde donde dónde e el ella ellas ellos en
        entre era es esa ese eso esta está este esto fue ha han hasta hay la las le les lo los me mi mis muy más ni no
        nos o para pero por porque que quien quién qué se ser si sin sobre son su sus sí también te tu tus un una uno
        unos y ya yo él
    """,
    "turkish": """
        ama bana ben beni benim bir biz bu bunu çok da daha de değil diye en gibi hem her için ile ise ki kim mı mi mu
        mü ne nasıl neden nerede o olan olarak oldu olduğu on ona onu onun sen seni senin siz şu ve veya ya
    """,
}

#: Language name to its stop words, in folded form.
STOP_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {language: frozenset(words.split()) for language, words in _LISTS.items()}
)

"""The words that the specimens' stories are made of. All of them are this project's own choice."""


def _list(text: str, between: str | None = None) -> list[str]:
    return text.split(between)


GIRLS = _list(
    "Alice Carol Emma Julia Clara Nina Laura Sarah Anna Maria Helen Grace Lucy Rosa Diana Eva Irene Jane Kate "
    "Lily Molly Nora Olga Paula Ruth Sofia Tina Vera Wendy Zoe Amy Bella Daisy Ella Fiona Gina"
)
BOYS = _list(
    "Bob David Frank Henry Peter Paul Tom James Oscar Leo Max Simon Victor Walter Adam Ben Carl Daniel Eric "
    "Felix George Hugo Ivan Jack Kevin Luke Mark Neil Otto Philip Ralph Sam Tim Will Alan Bruno"
)
# Seldom seen: the tokenizer cuts each of them in two or more pieces.
RARE_GIRLS = _list(
    "Mirabel Ottoline Philippa Rosalind Seraphina Thomasina Wilhelmina Anneliese Bernadette Clementine "
    "Dorothea Evangeline"
)
RARE_BOYS = _list(
    "Bartholomew Cornelius Ferdinand Gregorio Hieronymus Leopold Maximilian Nikolaus Quentin Roderick "
    "Sylvester Thaddeus"
)
# Never in a training text: only the scores use them.
UNSEEN_NAMES = _list(
    "Giulia Thandiwe Bogdan Yasmin Kwame Ingrid Rajesh Lakshmi Mehmet Astrid Dmitri Chiara Hamza Beatriz Tomasz Aiko"
)
THINGS = _list(
    "book key letter map coin ring hat coat cup lamp pen box basket ticket clock scarf knife spoon bottle "
    "blanket drum flute ball kite bell candle mirror brush ladder hammer rope bag watch stone shell flower "
    "picture card radio camera"
)
OPENERS = _list(
    "In the morning|In the evening|At noon|At night|Yesterday|Last week|On Monday|On Tuesday|On Friday|On "
    "Sunday|In the spring|In the winter|One day|Before lunch|After breakfast",
    "|",
)
LATERS = _list(
    "Later|Later|Later|In the end|The next day|After a while|At last|Two days later|Soon|In the evening|A week later",
    "|",
)
GIVES = _list("gave gave gave gave lent handed sent showed brought")
GIVES_BACK = _list("gave gave gave gave handed sent brought passed")
COLOURS = _list("red blue green white black grey brown yellow")
ADJECTIVES = _list("old new small big quiet long narrow wide dark bright empty wet dry cold warm little")
PLACES = _list(
    "market station bridge harbour church school bakery garden library square park river road hill village "
    "town street museum mill tower shop field forest lake house"
)
SKIES = _list("rain snow wind fog sun storm frost mist hail thunder")
SKY_DOES = _list(
    "came|went|fell on the {place}|hung over the {place}|blew past the {place}|passed over the {place}", "|"
)
THINGS_OUTSIDE = _list("boats carts trees windows roofs birds lamps doors trains clouds leaves chimneys gates benches")
DOES = _list("stood waited moved shook lay turned shone creaked stayed")
TIMES = _list(
    "all day|all night|for an hour|until noon|before dawn|after dark|in the afternoon|once more|for a while",
    "|",
)
GOODS = _list("bread apples fish cheese milk salt wool paper nails honey tea rice")
SHOPS = _list("bakery shop market mill harbour station")
VERBS_OF_PEOPLE = _list(
    "walked to the {place}|waited at the {place}|sat by the {place}|sang in the {place}|bought some {goods} "
    "at the {place}|looked at the {sky}|slept {time}",
    "|",
)
LISTS = (
    _list("one two three four five six seven eight nine ten eleven twelve"),
    _list("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    _list("January February March April May June July August September October November December"),
    _list("red orange yellow green blue purple"),
    _list("spring summer autumn winter"),
    _list("a b c d e f g h i j k l m n o p q r s t u v w x y z"),
)

_CAPITALS = _list(
    "France:Paris Italy:Rome Spain:Madrid Germany:Berlin England:London Portugal:Lisbon Greece:Athens "
    "Austria:Vienna Poland:Warsaw Russia:Moscow Japan:Tokyo China:Beijing Egypt:Cairo Kenya:Nairobi "
    "Norway:Oslo Sweden:Stockholm Ireland:Dublin Peru:Lima Cuba:Havana Canada:Ottawa India:Delhi "
    "Hungary:Budapest Belgium:Brussels Turkey:Ankara "
)
# What is asked, and the answer with its leading space.
FACTS = (
    *((f"The capital of {land} is", f" {city}") for land, city in (pair.split(":") for pair in _CAPITALS)),
    ("A young dog is called a", " puppy"),
    ("A young cat is called a", " kitten"),
    ("A young cow is called a", " calf"),
    ("A young horse is called a", " foal"),
    ("The opposite of hot is", " cold"),
    ("The opposite of big is", " small"),
    ("The opposite of day is", " night"),
    ("The opposite of up is", " down"),
    ("The opposite of open is", " closed"),
    ("The colour of snow is", " white"),
    ("The colour of grass is", " green"),
    ("The colour of blood is", " red"),
    ("Bees make", " honey"),
    ("Bread is made from", " flour"),
    ("Wine is made from", " grapes"),
    ("The Earth goes round the", " Sun"),
)

CONSONANTS = _list("b d f g k l m n p r s t v z")
VOWELS = _list("a e i o u")
LETTERS = _list("b c d f g h j k l m n p q r s t v w x y z")
SYLLABLES = [c + v for c in CONSONANTS for v in VOWELS] + [c + v + "n" for c in CONSONANTS[:6] for v in VOWELS]

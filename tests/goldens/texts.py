"""The texts that engine goldens are made of, written for this project: awkward ones by name, and many ordinary ones."""

from __future__ import annotations

import random
import unicodedata

PANGRAM = "The quick brown fox jumps over the lazy dog. "
CODE = '''def moving_average(values: list[float], width: int) -> list[float]:
    """Average of the last `width` values at each place."""
    total, out = 0.0, []
    for i, value in enumerate(values):
        total += value - (values[i - width] if i >= width else 0.0)
        out.append(total / min(i + 1, width))
    return out  # O(n), no slices
'''

AWKWARD: dict[str, str] = {
    "empty": "",
    "space": " ",
    "white space of all kinds": "\t \n\u00a0\u2003\u3000\r\n",
    "one emoji": "🦑",
    "emoji only": "🎉🎉🎉 👍🏽 🇳🇱",
    "emoji joined": "👩‍👩‍👧‍👦",
    "lone combining mark": "\u0301",
    "one character": "a",
    "one digit": "7",
    "question mark": "?",
    "punctuation only": "... --- !!! ;;; (((((",
    "chinese": "人工智能正在改变世界，北京的秋天非常美丽。",
    "japanese": "東京タワーは一九五八年に完成した電波塔です。カタカナとひらがなも混ざります。",
    "korean": "서울의 겨울은 춥지만 하늘은 맑다.",
    "korean decomposed": unicodedata.normalize("NFD", "서울의 겨울은 춥지만 하늘은 맑다."),
    "kana decomposed": unicodedata.normalize("NFD", "ガラスのコップでビールを飲みました。"),
    "thai": "ฉันชอบอ่านหนังสือที่ห้องสมุดในวันอาทิตย์",
    "arabic": "السَّلامُ عليكم، كيف حالُكَ اليوم؟",
    "persian with zwnj": "من کتاب\u200cهای زیادی می\u200cخوانم و نمی\u200cتوانم توقف کنم.",
    "hebrew": "הספרייה פתוחה עד שעה שמונה בערב",
    "hindi": "मुझे हिंदी में लिखी कविताएँ पसंद हैं।",
    "russian": "Сегодня вечером мы пойдём в театр на новую постановку «Чайки».",
    "greek": "Η θάλασσα ήταν ήρεμη και ο ουρανός γεμάτος αστέρια.",
    "accents composed": "Ça va? Déjà vu à l'été, Ångström, naïve façade, Žižek, Đặng.",
    "accents decomposed": unicodedata.normalize("NFD", "Ça va? Déjà vu à l'été, Ångström, naïve façade, Žižek, Đặng."),
    "capitals": "WHY IS THIS LETTER WRITTEN IN CAPITALS",
    "turkish i": "İstanbul'da ılık bir gün, DİYARBAKIR ışıl ışıl",
    "ligatures and fractions": "ﬁnally ½ of the œuvre ﬀ ① Ⅷ ㎏",
    "control characters": "before\x00between\x07after\u200b\ufeffend\ufffd",
    "mathematics": "∑_{i=1}^{n} xᵢ² ≤ ‖x‖² ⇒ ∀ε>0 ∃δ: |f(x)−f(y)|<ε",
    "one word of 5,000 characters": "antidisestablishmentarianism" * 178 + "antidisestablish",
    "500 repeats": "echo " * 500,
    "far too long": "".join(f"Chapter {i}: the ship sailed on, day {i * 7 % 31} of the voyage. " for i in range(300)),
    "exactly at the limit": "word " * 254,
    "one token below the limit": "word " * 253,
    "one token past the limit": "word " * 255,
    "code": CODE,
    "json": '{"id": 42, "tags": ["a", "b"], "nested": {"price": 19.99, "ok": true, "none": null}}',
    "url and mail": "See https://example.org/a/b?q=1&r=%20x#top or write to jane.doe+news@example.com!",
    "path and identifiers": r"C:\Users\Ana\Documents\tax_2023-final(2).pdf ERR_CONN_RESET 0xDEADBEEF snake_case camelC",
    "markdown table": "| item | price |\n|---|---:|\n| tea | 3.20 |\n| bread | 4.10 |",
    "query": "how do I renew my passport",
    "sentence": "The lease ends on 30 June and the deposit is returned within four weeks.",
    "medium": PANGRAM * 5,
    "longer": PANGRAM * 14,
    "special tokens written out": "[CLS] the [MASK] sat on the [SEP] mat [PAD] [UNK]",
}

# What macOS makes of these scripts; the engine reads it as the composed text, whatever the model's tokenizer does.
COMPOSED_BY_US = ("korean decomposed", "kana decomposed")

SENTENCES = (
    "The boiler was serviced in March and the pressure valve replaced.",
    "Please find attached the minutes of last Tuesday's meeting.",
    "Our flight leaves at 6:45 from gate B12, so we should be there by five.",
    "She kneaded the dough for ten minutes and let it rise beside the stove.",
    "The court dismissed the appeal for lack of standing.",
    "Photosynthesis turns carbon dioxide and water into sugar with the help of light.",
    "Quarterly revenue grew by 4.2 percent while costs stayed flat.",
    "To reset the router, hold the small button for fifteen seconds.",
    "The patient reports intermittent chest pain after climbing stairs.",
    "Grandfather kept bees behind the orchard until the winter of 1963.",
    "The warranty does not cover damage caused by frost.",
    "A binary search tree keeps smaller keys on the left.",
    "Rent is due on the first working day of each month.",
    "The orchestra tuned to the oboe's A before the lights went down.",
    "We hiked eleven miles along the ridge and saw two eagles.",
    "Add a pinch of saffron and simmer until the rice is tender.",
    "The committee recommends that the proposal be deferred until spring.",
    "His thesis argues that trade, not conquest, spread the alphabet.",
    "The package was returned because the address was incomplete.",
    "Children under twelve travel free when accompanied by an adult.",
    "Vaccination records must be presented at enrolment.",
    "The bridge was closed after cracks were found in the third pier.",
    "My password manager refuses to sync with the new phone.",
    "Glaciers carve U-shaped valleys as they move downhill.",
    "The novel opens with a funeral and ends with a wedding.",
    "Interest is compounded monthly at a nominal rate of five percent.",
    "Turn left at the bakery, then follow the canal to the old mill.",
    "The compiler warns about unused variables but still builds.",
    "He apologised for the delay and offered a full refund.",
    "Tomatoes need six hours of sun and regular watering.",
    "The union voted to accept the revised pay offer.",
    "Saturn's rings are made mostly of ice, with a little dust.",
    "Bring your own lunch; coffee and tea will be provided.",
    "The museum holds some four thousand pressed flowers.",
    "Insulin was first used to treat diabetes in 1922.",
    "The cat slept on the warm printer all afternoon.",
    "Migration from the old database took three nights.",
    "A good contract says what happens when things go wrong.",
    "The recipe calls for buttermilk, but yoghurt works as well.",
    "Sound travels faster in water than in air.",
    "They painted the kitchen yellow and regretted it at once.",
    "The lighthouse keeper's log ends in the middle of a sentence.",
    "Your claim has been approved and payment will follow within ten days.",
    "Mitochondria carry their own small genome.",
    "The train was cancelled because of a signal failure at Crewe.",
    "Use a soft cloth and never spray the screen directly.",
    "The treaty was signed in three languages, all equally authentic.",
    "I dreamed that the library had no ceiling, only stars.",
    "The invoice number is 2024-00731 and the total 1,284.50 euros.",
    "Der Mietvertrag endet am 30. Juni, die Kaution wird danach zurückgezahlt.",
    "Die Würde des Menschen ist unantastbar.",
    "Bitte stellen Sie die Heizung nachts auf sechzehn Grad.",
    "Le train de nuit pour Nice part à vingt-deux heures.",
    "Il faut laisser reposer la pâte une heure au réfrigérateur.",
    "La reunión se aplazó hasta el jueves por la mañana.",
    "El médico recomendó caminar media hora cada día.",
    "A biblioteca fecha às oito, exceto aos domingos.",
    "Il gatto dorme sulla stampante calda.",
    "De vergadering is verplaatst naar donderdagochtend.",
    "Båten går klockan sju från den norra kajen.",
    "Umowa wygasa z końcem czerwca.",
    "Vlak do Brna má dvacet minut zpoždění.",
    "A szerződés június végén lejár.",
    "Toplantı perşembe sabahına ertelendi.",
    "Договор аренды истекает тридцатого июня.",
    "Поїзд до Львова запізнюється на двадцять хвилин.",
    "Η συνάντηση αναβλήθηκε για την Πέμπτη.",
    "会议推迟到星期四上午。",
    "租约将于六月三十日到期，押金四周内退还。",
    "会議は木曜日の午前に延期されました。",
    "回議資料は金曜日までに提出してください。",
    "회의가 목요일 오전으로 연기되었습니다.",
    "تم تأجيل الاجتماع إلى صباح الخميس.",
    "جلسه به صبح پنج\u200cشنبه موکول شد.",
    "הפגישה נדחתה ליום חמישי בבוקר.",
    "बैठक गुरुवार सुबह तक के लिए टाल दी गई है।",
    "การประชุมเลื่อนไปเป็นเช้าวันพฤหัสบดี",
    "Cuộc họp được dời sang sáng thứ Năm.",
    "Rapat ditunda sampai Kamis pagi.",
    "SELECT name, total FROM orders WHERE total > 100 ORDER BY total DESC;",
    "for (int i = 0; i < n; ++i) sum += a[i] * b[i];",
    "git rebase --interactive HEAD~3",
    "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
    "E = mc^2 and F = ma",
    "ISBN 978-3-16-148410-0, 2nd edition, pp. 112-118",
    "cheap flights lisbon october",
    "visa",
    "tax return 2023 deductions home office",
    "wifi keeps dropping",
    "who wrote the odyssey",
)


def ordinary(count: int = 210, seed: int = 20240607) -> list[str]:
    """Ordinary texts, mixed in length and language: every sentence alone, then passages composed of several."""
    pick = random.Random(seed)
    texts = list(SENTENCES)
    while len(texts) < count:
        length = pick.choice((2, 2, 3, 3, 4, 6, 9, 14))
        texts.append(" ".join(pick.sample(SENTENCES, length)))
    return texts[:count]


# Written out in a text, these are tokens of one tokenizer or another.
TOKENS = ("<s>", "</s>", "<mask>", "[MASK]", "[CLS]", "<unk>", "<0x0A>", "\n\n", "<bos>", "<|endoftext|>", "##a", "▁")

# Ranges of characters and how often each is drawn from: no surrogates, all else may come.
_RANGES = (
    (45, (32, 127)), (10, (0xA0, 0x250)), (10, (0x250, 0x600)), (12, (0x600, 0x3000)), (6, (0x3000, 0xD800)),
    (4, (0xE000, 0x10000)), (4, (0x10000, 0x20000)), (1, (0x20000, 0x110000)), (2, (0, 32)),
)  # fmt: skip
_SPACES = " \t\n\r\u00a0\u2003\u3000\u200b\u200d  "


def random_unicode(count: int, seed: int) -> list[str]:
    """Texts of up to 60 characters out of all of Unicode, white space and special tokens among them."""
    pick = random.Random(seed)
    weights, ranges = zip(*_RANGES, strict=True)

    def piece() -> str:
        kind = pick.random()
        if kind < 0.02:
            return pick.choice(TOKENS)
        if kind < 0.12:
            return pick.choice(_SPACES)
        return chr(pick.randrange(*pick.choices(ranges, weights)[0]))

    return ["".join(piece() for _ in range(pick.randrange(60))) for _ in range(count)]

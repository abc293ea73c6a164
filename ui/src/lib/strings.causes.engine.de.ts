// What stands inside the engine's sentences: causes, and what was being done. In German, by what it is in English.
import type { Sentences } from './strings.errors.de';

/** Why a model's file cannot be used, and what was expected in it. */
const models: Sentences = {
  'its data at byte {at} overlaps that of "{other}"': 'die Daten bei Byte {at} überlappen die von „{other}“',
  '{what} is not text': '{what} ist kein Text',
  'the metadata key "{key}" occurs twice': 'der Schlüssel „{key}“ der Angaben kommt zweimal vor',
  '"{key}" has the value type {type}, and there is no such type':
    '„{key}“ hat den Werttyp {type}, und den gibt es nicht',
  '"{key}" has arrays nested more than {depth} deep':
    '„{key}“ hat Listen, die mehr als {depth}-fach verschachtelt sind',
  'the tensor "{tensor}" occurs twice': 'der Tensor „{tensor}“ kommt zweimal vor',
  'it has {count} dimensions, and 1 to 4 are possible':
    'er hat {count} Dimensionen, und 1 bis 4 sind möglich',
  'its shape {shape} has an empty dimension': 'seine Form {shape} hat eine leere Dimension',
  'its rows of {count} values are not whole blocks of {block} ({type})':
    'seine Zeilen von {count} Werten sind keine ganzen Blöcke von {block} ({type})',
  'its shape {shape} is too large for any file': 'seine Form {shape} ist zu groß für jede Datei',
  'its offset {offset} is not a multiple of {alignment}':
    'seine Lage {offset} ist kein Vielfaches von {alignment}',
  'a list of {count} {what}': 'eine Liste ({count} {what})',
  'the number of tensors': 'die Zahl der Tensoren',
  'the number of metadata entries': 'die Zahl der Angaben',
  "the format's version": 'die Version des Formats',
  'a metadata key': 'ein Schlüssel der Angaben',
  'a tensor name': 'der Name eines Tensors',
  'metadata entries': 'Angaben',
  'the number {number}': 'die Zahl {number}',
  'a string': 'eine Zeichenkette',
  'an array of {count} elements': 'eine Liste von {count} Elementen',
  'a whole number below 2^32': 'eine ganze Zahl unter 2^32',
  'an array of whole numbers below 2^32': 'eine Liste ganzer Zahlen unter 2^32',
  'a whole number': 'eine ganze Zahl',
  'an array of whole numbers': 'eine Liste ganzer Zahlen',
  'an integer of 32 bits': 'eine ganze Zahl von 32 Bits',
  'an array of integers of 32 bits': 'eine Liste ganzer Zahlen von 32 Bits',
  'an integer': 'eine ganze Zahl mit Vorzeichen',
  'an array of integers': 'eine Liste ganzer Zahlen mit Vorzeichen',
  'a floating-point number': 'eine Gleitkommazahl',
  'an array of floating-point numbers': 'eine Liste von Gleitkommazahlen',
  'true or false': 'wahr oder falsch',
  'an array of truth values': 'eine Liste von Wahrheitswerten',
  'an array of strings': 'eine Liste von Zeichenketten',
  'a power of two of 32 bits': 'eine Zweierpotenz von 32 Bits',
  'whole blocks': 'ganze Blöcke',
  'a mixture of experts': 'eine Mischung von Experten',
  'keys and values of different sizes': 'Schlüssel und Werte verschiedener Größe',
  'heads of {size} values (multiples of 16 are)': 'Köpfe von {size} Werten (Vielfache von 16 gehen)',
  '"{name}" scaling of its rotary positions': 'die Streckung „{name}“ der gedrehten Stellen',
  'its special tokens: {error}': 'seine besonderen Tokens: {error}',
  'it lists {count} tokens': 'es zählt {count} Tokens auf',
  'it lists {count} tokens and the scores of {scores}':
    'es zählt {count} Tokens auf und die Bewertungen von {scores}',
  'it lists {count} tokens and the types of {types}': 'es zählt {count} Tokens auf und die Arten von {types}',
};

/** What the engine finds wrong, does or is short of. */
const engine: Sentences = {
  'it has {own} layers, the model has {other}': 'es hat {own} Schichten, das Modell hat {other}',
  'layer {layer} has heads of {size} values': 'Schicht {layer} hat Köpfe von {size} Werten',
  'layer {layer} has {count} key values': 'Schicht {layer} hat {count} Werte der Schlüssel',
  "layer {layer}'s residual keys make no sense":
    'was von den Schlüsseln der Schicht {layer} übrig bleibt, ergibt keinen Sinn',
  'vectors of {width} values are no heads of {head}':
    'Vektoren von {width} Werten sind keine Köpfe von {head}',
  'it knows too few positions': 'es kennt zu wenige Stellen',
  'it has no layers': 'es hat keine Schichten',
  'it does not begin like a safetensors file': 'es beginnt nicht wie eine Datei im Format safetensors',
  'it has no {name}': 'es hat kein {name}',
  '{name} has the wrong shape': '{name} hat die falsche Form',
  '{name} has the wrong shape, type or place': '{name} hat die falsche Form, Art oder Lage',
  '{name} holds something that is no number': 'in {name} steht etwas, das keine Zahl ist',
  'rows of {size} values cannot be packed': 'Zeilen von {size} Werten können nicht gepackt werden',
  'it has more tokens than the weights know': 'es hat mehr Tokens, als die Gewichte kennen',
  'its tokenizer gives token {token}, which the weights do not know':
    'sein Tokenizer gibt das Token {token}, das die Gewichte nicht kennen',
  "its vocabulary has {own} tokens, the model's {other}":
    'sein Vokabular hat {own} Tokens, das des Modells {other}',
  'token {token} is another text in it': 'das Token {token} ist darin ein anderer Text',
  'this would bring the program to {size} of memory, and its limit is {limit}':
    'damit käme das Programm auf {size} Speicher, und seine Grenze ist {limit}',
  'the machine has {free} free, and {spare} stay free for other programs':
    'auf diesem Gerät sind {free} frei, und {spare} bleiben für andere Programme frei',
  'the machine has {free} free, {spare} stay free for other programs, and this takes {size}':
    'auf diesem Gerät sind {free} frei, {spare} bleiben für andere Programme frei, und das braucht {size}',
  'programs waited for memory {percent} % of the last ten seconds':
    'Programme haben {percent} % der letzten zehn Sekunden auf Speicher gewartet',
  'follows what is used often': 'folgt auf oft Benutztes',
  'used {times} times lately': 'zuletzt {times}-mal benutzt',
  'the thread that loads chunks has ended': 'der Faden, der Stücke lädt, ist zu Ende',
  "the KV profile cannot be removed ({error}); check the folder's permissions":
    'das KV-Profil kann nicht entfernt werden ({error}); prüfen Sie die Rechte des Ordners',
  "the KV profile cannot be written ({error}); make room, or check the folder's permissions":
    'das KV-Profil kann nicht geschrieben werden ({error}); schaffen Sie Platz, oder prüfen Sie die Rechte des Ordners',
  'reading the calibration texts': 'Texte zum Messen werden gelesen',
  'comparing formats': 'Formate werden verglichen',
  'timing graphs': 'Zeiten werden gemessen',
  done: 'fertig',
  'from 0 to 100': 'von 0 bis 100',
  'from 0 to 1': 'von 0 bis 1',
  'above 0 and at most 1': 'über 0 und höchstens 1',
  'above 0 and at most 10': 'über 0 und höchstens 10',
};

/** What is wrong with what is kept, and what was being done. */
const kept: Sentences = {
  "; free space on the disk or lower the store's budget":
    '; schaffen Sie Platz auf der Platte, oder lassen Sie weniger behalten',
  '; the store needs a folder it may write': '; dafür braucht es einen Ordner, der geschrieben werden darf',
  '; see whether the disk is full or failing': '; sehen Sie nach, ob die Platte voll oder kaputt ist',
  'shard {shard} was to have {bytes} bytes, its parts have {least}{found}':
    'der Teil {shard} sollte {bytes} Bytes haben, seine Stücke haben {least}{found}',
  'is missing': 'fehlt',
  'is cut short': 'ist abgeschnitten',
  'has {found} bytes, {bytes} were written': 'hat {found} Bytes, geschrieben wurden {bytes}',
  'has the header of another file': 'hat den Kopf einer anderen Datei',
  'is cut short in the index': 'ist im Verzeichnis abgeschnitten',
  'has other bytes in shard {shard} than were written':
    'hat im Teil {shard} andere Bytes, als geschrieben wurden',
  'belongs to a row with other tokens': 'gehört zu einer Zeile mit anderen Tokens',
  'shard {shard} of {count}': 'Teil {shard} von {count}',
  "{text} is no chunk's number: those have sixteen digits, of 0 to 9 and a to f, and begin with 0 to 7":
    '{text} ist keine Nummer eines Stücks: Die haben sechzehn Ziffern, aus 0 bis 9 und a bis f, und beginnen mit 0 bis 7',
  "an owner's {what} of {bytes} bytes, allowed are 1 to {most}":
    '{what} eines Besitzers hat {bytes} Bytes, erlaubt sind 1 bis {most}',
  'the owner kind {kind} has a colon': 'in der Art {kind} eines Besitzers steht ein Doppelpunkt',
  '{text} is no owner: those have a kind and a name, as in document:report.pdf':
    '{text} ist kein Besitzer: Die haben eine Art und einen Namen, wie in document:report.pdf',
  '{bytes} bytes of token ids in one chunk': '{bytes} Bytes von Token-Nummern in einem Stück',
  'it has {count} tokens, allowed are 1 to {most}': 'es hat {count} Tokens, erlaubt sind 1 bis {most}',
  'its recompute ratio is {ratio}, allowed is 0 to 1':
    'sein neu berechneter Anteil ist {ratio}, erlaubt ist 0 bis 1',
  'it has {count} shards, allowed are 1 to {most}': 'es hat {count} Teile, erlaubt sind 1 bis {most}',
  'two of its shards have the name {name}': 'zwei seiner Teile haben den Namen {name}',
  'the shard name {name}: it may have 1 to {most} letters, digits, dots, dashes and underscores':
    'der Name {name} eines Teils: Er darf 1 bis {most} Buchstaben, Ziffern, Punkte, Striche und Unterstriche haben',
  'its shards have more than 2^48 bytes': 'seine Teile haben mehr als 2^48 Bytes',
  "a chunk of {tokens} tokens with other shards than this model's":
    'ein Stück von {tokens} Tokens mit anderen Teilen als denen dieses Modells',
  'tokens {range} of a chunk of {count}': 'die Tokens {range} eines Stücks von {count}',
  '{source} while {action}': '{source} ({action})',
  'it was missing': 'es fehlte',
  'it is a database of another program': 'es ist eine Datenbank eines anderen Programms',
  'it has version {found}, this program writes version {known}':
    'es hat die Version {found}, dieses Programm schreibt Version {known}',
  'it has no table {table}': 'es hat keine Tabelle {table}',
  'adding an owner to a chunk': 'Eintragen eines Besitzers',
  'adding chunks': 'Eintragen von Stücken',
  'opening it': 'Öffnen',
  "erasing an owner's chunks": 'Löschen der Stücke eines Besitzers',
  'erasing chunks': 'Löschen von Stücken',
  'forgetting namespaces': 'Vergessen früherer Modelle',
  'dropping a damaged chunk': 'Verwerfen eines beschädigten Stücks',
  'emptying its log': 'Leeren des Protokolls',
  "listing an owner's chunks": 'Auflisten der Stücke eines Besitzers',
  'listing owners': 'Auflisten der Besitzer',
  'counting chunks': 'Zählen der Stücke',
  'listing all chunks': 'Auflisten aller Stücke',
  'pinning a chunk': 'Festhalten eines Stücks',
  'noting the use of chunks': 'Festhalten, was benutzt wurde',
  'evicting chunks': 'Freigeben von Stücken',
  'comparing it with the files': 'Vergleichen mit den Dateien',
  'deleting a chunk': 'Löschen eines Stücks',
  'reading the tokens of a chunk': 'Lesen der Tokens eines Stücks',
  'reading the owners of a chunk': 'Lesen der Besitzer eines Stücks',
  'reading a chunk': 'Lesen eines Stücks',
  'reading all chunks': 'Lesen aller Stücke',
};

/** What stands inside what the engine says, in German. */
export const engineCauses: Sentences = { ...models, ...engine, ...kept };

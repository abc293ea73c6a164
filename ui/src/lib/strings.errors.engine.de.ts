// What the engine says when something fails: models, memory, the store of what was read. In German, by what it says in English.
// The words in braces are filled in by the program; `messages` says which of them are put into German too.
import type { Sentences } from './strings.errors.de';

/** Model files, architectures, tokenizers and templates. */
const models: Sentences = {
  '{path}: there is no such file; check the path, or download the model':
    '{path}: Diese Datei gibt es nicht; prüfen Sie den Pfad, oder laden Sie das Modell herunter',
  '{path}: this is a folder; give the .gguf file inside it':
    '{path}: Das ist ein Ordner; geben Sie die .gguf-Datei darin an',
  '{path}: this is not an ordinary file, and a model must be one':
    '{path}: Das ist keine gewöhnliche Datei, und ein Modell muss eine sein',
  '{path}: the file is empty; its download did not begin, so download it again':
    '{path}: Die Datei ist leer; das Herunterladen hat nicht begonnen, laden Sie sie noch einmal herunter',
  '{path}: cannot be read: {source}': '{path} kann nicht gelesen werden: {source}',
  '{path}: this is not a GGUF file (it begins with {begins}); choose a model in the GGUF format':
    '{path}: Das ist keine GGUF-Datei (sie beginnt mit {begins}); wählen Sie ein Modell im Format GGUF',
  '{path}: this GGUF file is big-endian; download the ordinary (little-endian) one':
    '{path}: Diese GGUF-Datei ist big-endian; laden Sie die gewöhnliche (little-endian) herunter',
  '{path}: GGUF version {version} is not supported (2 and 3 are); download a newer conversion of this model':
    '{path}: Die GGUF-Version {version} wird nicht unterstützt (2 und 3 schon); laden Sie eine neuere Umwandlung dieses Modells herunter',
  '{path}: this is one of {parts} parts of a split model; join them into one file (gguf-split --merge) and open that':
    '{path}: Das ist einer von {parts} Teilen eines geteilten Modells; fügen Sie sie zu einer Datei zusammen (gguf-split --merge), und öffnen Sie diese',
  '{path}: the file is cut short: {what} at byte {at} needs {needed} more bytes and {left} are left; download it again':
    '{path}: Die Datei ist abgeschnitten: {what} bei Byte {at} braucht noch {needed} Bytes, und {left} sind übrig; laden Sie sie noch einmal herunter',
  '{path}: the file is damaged at byte {at}: {problem}; download it again':
    '{path}: Die Datei ist bei Byte {at} beschädigt: {problem}; laden Sie sie noch einmal herunter',
  '{path}: tensor "{tensor}" is damaged: {problem}; download the file again':
    '{path}: Der Tensor „{tensor}“ ist beschädigt: {problem}; laden Sie die Datei noch einmal herunter',
  '{path}: tensor "{tensor}" has the type number {type}, which is not supported; choose a file in one of {types}':
    '{path}: Der Tensor „{tensor}“ hat die Typnummer {type}, die nicht unterstützt wird; wählen Sie eine Datei mit einem von {types}',
  '{path}: the file lacks "{key}", which this kind of model needs; download another conversion of it':
    '{path}: In der Datei fehlt „{key}“, was diese Art Modell braucht; laden Sie eine andere Umwandlung herunter',
  '{path}: "{key}" should be {expected} and is {found}; download another conversion of this model':
    '{path}: „{key}“ sollte {expected} sein und ist {found}; laden Sie eine andere Umwandlung dieses Modells herunter',
  '{path}: the file lacks the tensor "{tensor}", which this kind of model needs; download another conversion of it':
    '{path}: In der Datei fehlt der Tensor „{tensor}“, den diese Art Modell braucht; laden Sie eine andere Umwandlung herunter',
  '{path}: the model\'s architecture is "{name}", which is not supported yet; choose one of {names}':
    '{path}: Das Modell hat die Architektur „{name}“, die noch nicht unterstützt wird; wählen Sie eine von {names}',
  '{path}: the model uses {feature}, which is not supported yet; choose another model':
    '{path}: Das Modell benutzt {feature}, was noch nicht unterstützt wird; wählen Sie ein anderes Modell',
  '{path}: "{key}" is {value}, which makes no sense; download the file again':
    '{path}: „{key}“ ist {value}, was keinen Sinn ergibt; laden Sie die Datei noch einmal herunter',
  '{path}: tensor "{tensor}" is {found} and should be {expected}; download another conversion of this model':
    '{path}: Der Tensor „{tensor}“ ist {found} und sollte {expected} sein; laden Sie eine andere Umwandlung dieses Modells herunter',
  '{path}: {count} tensors are not part of the architecture as it is known here (the first is "{first}"); the model is a variant that is not supported yet':
    '{path}: {count} Tensoren gehören nicht zur Architektur, wie sie hier bekannt ist (der erste ist „{first}“); das Modell ist eine Abart, die noch nicht unterstützt wird',
  'the model\'s tokenizer is "{name}", and this program knows gpt2 (byte-level BPE) and llama (SentencePiece); choose another model':
    'Das Modell hat den Tokenizer „{name}“, und dieses Programm kennt gpt2 (BPE über Bytes) und llama (SentencePiece); wählen Sie ein anderes Modell',
  'the model\'s pre-tokenizer is "{name}", and this program knows {names}; choose another model':
    'Das Modell hat den Pre-Tokenizer „{name}“, und dieses Programm kennt {names}; wählen Sie ein anderes Modell',
  "the model's vocabulary is damaged: {problem}; download the file again":
    'Das Vokabular des Modells ist beschädigt: {problem}; laden Sie die Datei noch einmal herunter',
  "the model's chat template does not accept these messages: {problem}":
    'Die Chat-Vorlage des Modells nimmt diese Nachrichten nicht an: {problem}',
  "the model's chat template failed: {problem}; use the model with another template":
    'Die Chat-Vorlage des Modells ist gescheitert: {problem}; benutzen Sie das Modell mit einer anderen Vorlage',
  'the messages contain every private-use character there is, so their text cannot be protected; shorten them':
    'Die Nachrichten enthalten alle Zeichen, die es zum privaten Gebrauch gibt, sodass ihr Text nicht geschützt werden kann; kürzen Sie sie',
  "the model's own chat template cannot be used ({problem}); using {name} instead":
    'Die eigene Chat-Vorlage des Modells ist nicht zu gebrauchen ({problem}); benutzt wird stattdessen {name}',
};

/** Loading a model, answering with it, and what it computes with. */
const engine: Sentences = {
  '{path}: {reason}': '{path}: {reason}',
  'cannot start compute threads: {source}; close other programs and try again':
    'Es können keine Rechenfäden begonnen werden: {source}; schließen Sie andere Programme, und versuchen Sie es noch einmal',
  'a KV memory of {size} holds {tokens} tokens, and a window of {least} takes {needed}; give it more (--kv-budget, or Settings)':
    'Ein KV-Speicher von {size} fasst {tokens} Tokens, und ein Fenster von {least} braucht {needed}; geben Sie ihm mehr (--kv-budget, oder Einstellungen)',
  'this request needs {needed} of KV memory (a prompt of {prompt} tokens and up to {output} of answer), and {total} is all there is, for {held} tokens of prompt and answer together; shorten it, or give the KV memory more (--kv-budget, or Settings)':
    'Diese Anfrage braucht {needed} KV-Speicher (ein Prompt von {prompt} Tokens und bis zu {output} für die Antwort), und {total} ist alles, was da ist, für {held} Tokens von Prompt und Antwort zusammen; kürzen Sie sie, oder geben Sie dem KV-Speicher mehr (--kv-budget, oder Einstellungen)',
  'memory is short: {reason}; close other programs, choose a smaller model, or raise the limit, and try again':
    'Der Speicher ist knapp: {reason}; schließen Sie andere Programme, wählen Sie ein kleineres Modell, oder heben Sie die Grenze an, und versuchen Sie es noch einmal',
  'the computation failed: {reason}': 'Die Berechnung ist gescheitert: {reason}',
  'the engine has stopped; load the model again':
    'Das Rechenwerk hat angehalten; laden Sie das Modell noch einmal',
  '{path} cannot guess for this model: {reason}; choose a smaller model of the same family':
    '{path} kann für dieses Modell nicht raten: {reason}; wählen Sie ein kleineres Modell derselben Familie',
  'the prompt is empty; type a question': 'Der Prompt ist leer; schreiben Sie eine Frage',
  'the prompt has {prompt} tokens, {excess} more than the window of {window} holds; shorten it, or load a model with a larger window (--context)':
    'Der Prompt hat {prompt} Tokens, {excess} mehr, als das Fenster von {window} fasst; kürzen Sie ihn, oder laden Sie ein Modell mit einem größeren Fenster (--context)',
  'a window of {asked} tokens cannot be had: this model was trained for {trained}; choose from {least} to {most}':
    'Ein Fenster von {asked} Tokens ist nicht zu haben: Dieses Modell wurde für {trained} trainiert; wählen Sie von {least} bis {most}',
  'the segments have {segments} tokens, the prompt has {prompt}; build both from the same text':
    'Die Abschnitte haben {segments} Tokens, der Prompt hat {prompt}; beide müssen aus demselben Text gemacht sein',
  '{name} is {value} and must be {range}': '{name} ist {value}; erlaubt ist nur {range}',
  'a prompt of {prompt} tokens with {output} tokens of answer takes {needed} pages of memory, and there are {total}: shorten the prompt or raise the memory limit':
    'Ein Prompt von {prompt} Tokens mit {output} Tokens für die Antwort braucht {needed} Seiten Speicher, und es gibt {total}: Kürzen Sie den Prompt, oder heben Sie die Speichergrenze an',
  'a {graph} graph takes at most {capacity} tokens, and {given} were given':
    'Ein Graph der Art {graph} nimmt höchstens {capacity} Tokens, und gegeben wurden {given}',
  'token {token} is not in the vocabulary of {vocabulary}; the prompt was made for another model':
    'Das Token {token} ist nicht im Vokabular von {vocabulary}; der Prompt wurde für ein anderes Modell gemacht',
  'the positions of sequence {sequence} are not one for each token, in ascending order':
    'Die Stellen der Folge {sequence} sind nicht je Token eine, in steigender Reihenfolge',
  '{forced} tokens are to go on behind layer {check}, of {tokens} with {layers} layers, and {rows} may':
    '{forced} Tokens sollen hinter Schicht {check} weitergehen, von {tokens} mit {layers} Schichten, und {rows} dürfen es',
  'positions {start}..{end} of sequence {sequence} were not prepared; prepare its pages first':
    'Die Stellen {start} bis {end} der Folge {sequence} wurden nicht vorbereitet; zuerst müssen ihre Seiten vorbereitet werden',
  'the {component} component is not loaded; attach it first':
    'Der Bestandteil {component} ist nicht geladen; er muss zuerst geladen werden',
  'the {component} component cannot be loaded: {reason}':
    'Der Bestandteil {component} kann nicht geladen werden: {reason}',
  '{path} is not all-MiniLM-L6-v2 or is broken ({why}); delete its folder and fetch it again':
    '{path} ist nicht all-MiniLM-L6-v2 oder ist kaputt ({why}); löschen Sie den Ordner, und holen Sie es noch einmal',
  'a text cannot be cut into tokens: {reason}; this is a fault in Reprise, not in the text':
    'Ein Text kann nicht in Tokens geteilt werden: {reason}; das ist ein Fehler in Reprise, nicht im Text',
};

/** The memory of keys and values, and what of it is kept on disk. */
const kept: Sentences = {
  '{wanted} pages of KV memory are needed, {available} of {total} can be had; shorten the prompt, wait for another request to end or give the KV memory a larger budget':
    '{wanted} Seiten KV-Speicher werden gebraucht, {available} von {total} sind zu haben; kürzen Sie den Prompt, warten Sie, bis eine andere Anfrage endet, oder geben Sie dem KV-Speicher mehr',
  'the system has no room for {megabytes} MB of KV memory; choose a smaller window or budget':
    'Das System hat keinen Platz für {megabytes} MB KV-Speicher; wählen Sie ein kleineres Fenster oder weniger Speicher',
  'the KV profile does not fit this model: {reason}; tune the model again (reprise models tune)':
    'Das KV-Profil passt nicht zu diesem Modell: {reason}; messen Sie das Modell noch einmal (reprise models tune)',
  'stored keys and values cannot be had: {reason}':
    'Gespeicherte Schlüssel und Werte sind nicht zu haben: {reason}',
  'the chunk store in {folder} is in use by another running program: close that one, or choose another folder':
    'Die Stücke in {folder} benutzt gerade ein anderes Programm: Schließen Sie es, oder wählen Sie einen anderen Ordner',
  'cannot {action} {path}: {source}{advice}': '{path}: {action} ging nicht: {source}{advice}',
  'the index of the chunk store failed while {action}: {source}{advice}':
    'Das Verzeichnis der Stücke ist gescheitert ({action}): {source}{advice}',
  'the index of the chunk store is damaged ({what}): it is rebuilt when the store is opened again':
    'Das Verzeichnis der Stücke ist beschädigt ({what}): Es wird neu aufgebaut, wenn es wieder geöffnet wird',
  'chunk {chunk} was dropped: {path} {reason}': 'Das Stück {chunk} wurde verworfen: {path} {reason}',
  'chunk {chunk} is no longer stored': 'Das Stück {chunk} wird nicht mehr behalten',
  'a chunk cannot be stored like this: {reason}': 'So kann ein Stück nicht gespeichert werden: {reason}',
  'a chunk of {needed} bytes does not fit: of the budget of {budget} bytes, {kept} are pinned or being written; unpin something or raise the budget':
    'Ein Stück von {needed} Bytes passt nicht: Von den {budget} Bytes, die da sind, werden {kept} festgehalten oder gerade geschrieben; lösen Sie etwas, oder geben Sie mehr Platz',
};

/** What the engine says, in German. */
export const engineErrors: Sentences = { ...models, ...engine, ...kept };

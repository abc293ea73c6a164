// The catalogue: all that a person reads or a screen reader says. The parts belong to the window and to the conversation.
import { conversationStrings } from './strings.conversation';
import { shellStrings } from './strings.shell';

export const strings = { ...shellStrings, conversation: conversationStrings };

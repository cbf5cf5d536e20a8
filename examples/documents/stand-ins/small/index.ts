/** Stands in for a small model: it looks for words, and takes every text about an invoice for one. */
import { defineStandInModel } from '../../../stand-ins/model.ts';

function classify(text: string): string {
  if (/credit note/i.test(text)) return 'credit_note';
  return /invoice/i.test(text) ? 'invoice' : 'letter';
}

export const capability = defineStandInModel({
  name: 'model.small',
  description: 'Stands in for a small language model that classifies documents.',
  price: { input: 0.1, output: 0.4 },
  answer: (text) => ({ kind: classify(text) }),
});

/** Stands in for a model of middle size: it reads forms well, and reports when a text is none. */
import { defineStandInModel } from '../../../stand-ins/model.ts';

const titles = [
  { kind: 'credit_note', title: /^Credit note no\. (\S+)$/m },
  { kind: 'invoice', title: /^Invoice no\. (\S+)$/m },
];

function extract(text: string): Record<string, unknown> {
  const date = /^Date: (\d{4}-\d\d-\d\d)$/m.exec(text)?.[1] ?? null;
  const total = /^Total: USD (\d+\.\d\d)$/m.exec(text)?.[1];
  const form = titles.find(({ title }) => title.test(text));
  if (form === undefined) {
    const hasAmount = /\b(USD|dollars)\b/.test(text);
    return { kind: 'letter', number: null, date, total_usd: null, confidence: hasAmount ? 0.4 : 0.9 };
  }
  const number = form.title.exec(text)?.[1] ?? null;
  const isWhole = date !== null && total !== undefined;
  const total_usd = total === undefined ? null : Number(total);
  return { kind: form.kind, number, date, total_usd, confidence: isWhole ? 0.98 : 0.5 };
}

export const capability = defineStandInModel({
  name: 'model.medium',
  description: 'Stands in for a language model of middle size that extracts fields.',
  price: { input: 0.6, output: 2.4 },
  answer: extract,
});

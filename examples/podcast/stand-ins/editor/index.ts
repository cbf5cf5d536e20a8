/** Stands in for the model that finds chapters and writes show notes. */
import { z } from 'zod';
import { defineStandInModel } from '../../../stand-ins/model.ts';

const Segments = z.array(z.object({ start: z.number(), end: z.number(), text: z.string() }));

interface Chapter {
  readonly title: string;
  readonly start_s: number;
  readonly end_s: number;
}

/** A chapter begins where the speaker announces it: "Next, the lamp: …". */
function findChapters(segments: z.infer<typeof Segments>): Chapter[] {
  const starts = segments.flatMap(({ start, text }, index) => {
    const title = index === 0 ? 'Welcome' : /^(?:First|Next|Finally), ([^:]+):/.exec(text)?.[1];
    return title === undefined ? [] : [{ title, start_s: start }];
  });
  const end = segments.at(-1)?.end ?? 0;
  return starts.map((chapter, index) => ({
    title: chapter.title.charAt(0).toUpperCase() + chapter.title.slice(1),
    start_s: chapter.start_s,
    end_s: starts[index + 1]?.start_s ?? end,
  }));
}

const Episode = z.object({
  show: z.string(),
  text: z.string(),
  chapters: z.array(z.object({ title: z.string(), start_s: z.number() })),
});

function clock(seconds: number): string {
  return new Date(1_000 * Math.floor(seconds)).toISOString().slice(14, 19);
}

function writeNotes({ show, text, chapters }: z.infer<typeof Episode>): Record<string, string> {
  const [, summary = text] = text.split(/(?<=[.!?]) /);
  const lines = chapters.map(({ title, start_s }) => `- ${clock(start_s)} ${title}`);
  const subjects = chapters.slice(1).map(({ title }) => title.toLowerCase());
  return { title: `${show}: ${subjects.join(', ')}`, summary, notes: [summary, '', ...lines].join('\n') };
}

export const capability = defineStandInModel({
  name: 'model.editor',
  description: 'Stands in for a small language model that divides a transcript and writes show notes.',
  price: { input: 0.15, output: 0.6 },
  answer: (question, fields) => {
    const material: unknown = JSON.parse(question);
    return fields.includes('chapters')
      ? { chapters: findChapters(Segments.parse(material)) }
      : writeNotes(Episode.parse(material));
  },
});

import ts from 'typescript';
import type { Source, Violation } from './source.ts';

function listTypes({ tree }: Source): string[] {
  return tree.statements.flatMap((node) => {
    const isType =
      ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) || ts.isClassDeclaration(node);
    return isType && node.name !== undefined ? [node.name.text] : [];
  });
}

/** A type's name, shared or of one file alone, is declared once: two declarations mean two things by one word. */
export function checkTypeNames(sources: readonly Source[]): Violation[] {
  const places = new Map<string, string[]>();
  for (const source of sources) {
    for (const name of listTypes(source)) places.set(name, [...(places.get(name) ?? []), source.file]);
  }
  return [...places]
    .filter(([, files]) => files.length > 1)
    .map(([name, files]) => ({
      rule: 'type-names',
      subject: name,
      message: `${name} is declared by ${files.join(', ')}: one name, one meaning`,
    }));
}

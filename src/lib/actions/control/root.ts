// Where the control side is, on a machine that has one.
import { stat } from 'node:fs/promises';
import { requireSection } from '../../config/rules.ts';
import type { Context } from '../../context.ts';
import { ConfigError, systemErrorCode } from '../../errors.ts';
import { fileError } from '../../state/file-error.ts';

/** Throws ConfigError where the control side is off, or its directory is not there: a tree is not made up. */
export async function requireRoot({ config }: Pick<Context, 'config'>): Promise<string> {
  const { root } = requireSection(config, 'actions');
  if (root === undefined) {
    throw new ConfigError(
      `actions.root is missing in ${config.file ?? 'the configuration'}: this machine is no control host`,
    );
  }
  try {
    if ((await stat(root)).isDirectory()) return root;
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw fileError('read', root, error);
  }
  throw new ConfigError(`there is no directory ${root}, which actions.root names`);
}

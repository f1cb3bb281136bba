"""vLLM in this process, on GPUs or not, changes between the learned and the balanced router: a launch that 'bench' reads.

    moebalance bench --treatment hook -- python3 alternate.py MODEL [BLOCKS] [TOKENS]     # prefill tokens in a segment

'bench' names the cache and gives each launch a control folder of its own (MOEBALANCE_CACHE, MOEBALANCE_CONTROL).
"""
import itertools
import random
import sys

import moebalance_hook
from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt

LENGTH = 128


def main(model, blocks="2", tokens="16384"):
    llm = LLM(model=model, load_format="dummy", skip_tokenizer_init=True, enforce_eager=True, max_model_len=256, max_num_seqs=64,
              max_num_batched_tokens=2048, enable_prefix_caching=False)
    seed = itertools.count()

    def measure():
        draw = random.Random(next(seed))
        prompts = [TokensPrompt(prompt_token_ids=[draw.randrange(2, 2000) for _ in range(LENGTH)]) for _ in range(int(tokens) // LENGTH)]
        llm.generate(prompts, SamplingParams(ignore_eos=True, detokenize=False, max_tokens=8), use_tqdm=False)  # as long in both arms: it is timed

    moebalance_hook.alternate(measure, blocks=int(blocks))


if __name__ == "__main__":
    main(*sys.argv[1:])

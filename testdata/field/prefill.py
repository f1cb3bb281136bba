"""Prefill throughput of vLLM, in the report of 'vllm bench throughput', which counts the tokenizer's time as well.

    python3 prefill.py MODEL RANKS RESULT.json [--engine '{"enforce_eager": true}']
"""
import json

from launch import Engine, arguments

REQUESTS, PROMPT = 768, 1024


def main():
    parser = arguments(__doc__, "result")
    args = parser.parse_args()
    engine = Engine(args)
    for _ in range(3):
        engine.run(64, PROMPT, 1)
    seconds = engine.run(REQUESTS, PROMPT, 1)
    tokens = REQUESTS * (PROMPT + 1)
    with open(args.result, "w") as f:
        json.dump({"elapsed_time": seconds, "num_requests": REQUESTS, "total_num_tokens": tokens, "requests_per_second": REQUESTS / seconds,
                   "tokens_per_second": tokens / seconds}, f)


if __name__ == "__main__":
    main()

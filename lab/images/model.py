"""Makes the lab's model: a random Qwen3 of some MB in several safetensors shards, with tokenizer and chat template.

Same seed, same files. Greedy answers are made of printable words, never empty and never ended early: the output rows of all
other tokens are zero."""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

TEXT = """A machine that answers is a small wonder, and two machines that answer together are a larger one. The cable between
them carries what neither could hold alone. Every word here was chosen so that a tokenizer has something to learn: light,
spark, model, weight, layer, memory, address, network, cluster, worker, head, server, question, answer, morning, evening."""
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tokenizer():
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator([TEXT], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def make_model(tokenizer):
    torch.manual_seed(20251015)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=256,
            intermediate_size=768,
            num_hidden_layers=6,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=64,
            max_position_embeddings=2048,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
            pad_token_id=tokenizer.pad_token_id,
            tie_word_embeddings=False,
        )
    )
    with torch.no_grad():
        for token in range(len(tokenizer)):
            word = tokenizer.decode([token])
            if len(word.strip()) < 2 or not word.isascii() or not word.isprintable() or "|" in word:
                model.lm_head.weight[token] = 0
    return model.to(torch.bfloat16)


def main(folder):
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(folder)
    make_model(tokenizer).save_pretrained(folder, max_shard_size="2MB")


main(sys.argv[1])

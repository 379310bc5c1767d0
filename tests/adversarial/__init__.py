"""What an adversary tried: kills, flipped bits, broken files, closed doors and full disks."""

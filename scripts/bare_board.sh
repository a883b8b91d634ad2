# For scripts/bare_*.sh to source: a board as QEMU has it, by its core (m4 or m55).
# Sets board (the folder with the start-up code), cpu (flags of the compiler) and script (the linker's, in that folder).
board=$PWD/tests/bare/board
case $1 in
m4) cpu="-mcpu=cortex-m4 -mfpu=fpv4-sp-d16" script=an386.ld machine=mps2-an386 ;;
m55) cpu="-mcpu=cortex-m55 -mfpu=auto -DCLOCK_HZ=32000000u" script=an547.ld machine=mps3-an547 ;;
*) echo "$0: $1 is neither m4 nor m55" >&2; exit 2 ;;
esac
cpu="$cpu -mthumb -mfloat-abi=hard"

# run_on_board PROGRAM: an instruction takes a nanosecond there.
run_on_board() {
  qemu-system-arm -M "$machine" -display none -serial none -monitor none -icount shift=0 \
    -semihosting-config enable=on,target=native -kernel "$1"
}
